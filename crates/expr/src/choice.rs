//! Steps that choose between values: `when` and `coalesce`.

use penstock_memory::Physical;
use penstock_types::ComputeError;

use crate::blend::Blend;
use crate::evaluate::Evaluator;
use crate::intermediate::{Intermediate, column_of};
use crate::node::CompiledNode;

impl<'a> Evaluator<'a, '_> {
    /// Evaluates to the value of the first condition that holds. Values that are not chosen cannot fail (FAILURE-1).
    pub(crate) fn when(
        &mut self,
        on: Physical,
        branches: &'a [(CompiledNode, CompiledNode)],
        otherwise: &'a CompiledNode,
    ) -> Result<Intermediate<'a>, ComputeError> {
        let rows = self.rows();
        let around = self.failures.take_chosen();
        let mut left = around.clone().unwrap_or_else(|| vec![1; rows]);
        let mut blend = Blend::new(self.take(on), rows);
        for (condition, value) in branches {
            self.failures.choose(Some(left.clone()));
            let condition = self.eval(condition)?;
            let condition = self.spread(condition);
            let column = column_of(&condition);
            let mut chosen: Vec<u8> =
                column.fixed::<u8>().iter().zip(&left).map(|(holds, left)| holds & left).collect();
            if let Some(valid) = column.valid {
                chosen.iter_mut().zip(valid).for_each(|(chosen, valid)| *chosen &= valid);
            }
            self.give(condition);
            left.iter_mut().zip(&chosen).for_each(|(left, chosen)| *left &= !chosen);
            self.blend(&mut blend, value, chosen)?;
        }
        self.blend(&mut blend, otherwise, left)?;
        self.failures.choose(around);
        Ok(Intermediate::Owned(blend.finish()))
    }

    /// Evaluates `node` for the chosen rows, and puts their values into the column.
    fn blend(
        &mut self,
        blend: &mut Blend,
        node: &'a CompiledNode,
        chosen: Vec<u8>,
    ) -> Result<(), ComputeError> {
        if !chosen.contains(&1) {
            return Ok(());
        }
        self.failures.choose(Some(chosen));
        let value = self.eval(node)?;
        let chosen = self.failures.take_chosen().expect("a step returns what it takes");
        blend.put(&value.source(), &chosen);
        self.give(value);
        Ok(())
    }

    /// Evaluates to the first value that is not null. Later values cannot fail (FAILURE-1).
    pub(crate) fn coalesce(
        &mut self,
        on: Physical,
        inputs: &'a [CompiledNode],
    ) -> Result<Intermediate<'a>, ComputeError> {
        let (first, rest) = inputs.split_first().expect("EXPR-1: coalesce has at least one operand");
        let value = self.eval(first)?;
        let mut missing: Vec<u8> = match (&value, value.valid()) {
            (Intermediate::Null, _) => vec![1; self.rows()],
            (_, None) => return Ok(value),
            (_, Some(valid)) => valid.iter().map(|valid| valid ^ 1).collect(),
        };
        let mut blend = Blend::new(self.take(on), self.rows());
        blend.put(&value.source(), &[]);
        self.give(value);
        let around = self.failures.take_chosen();
        if let Some(around) = &around {
            missing.iter_mut().zip(around).for_each(|(missing, around)| *missing &= around);
        }
        for node in rest {
            if !missing.contains(&1) {
                break;
            }
            self.failures.choose(Some(missing.clone()));
            let value = self.eval(node)?;
            blend.put(&value.source(), &missing);
            match (&value, value.valid()) {
                (Intermediate::Null, _) => {}
                (_, None) => missing.fill(0),
                (_, Some(valid)) => {
                    missing.iter_mut().zip(valid).for_each(|(missing, valid)| *missing &= valid ^ 1);
                }
            }
            self.give(value);
        }
        self.failures.choose(around);
        Ok(Intermediate::Owned(blend.finish()))
    }
}
