//! `#[guarded]`: functions called from another language return an error where they would panic.
//!
//! The attribute is placed before `#[pymethods]` or `#[pyfunction]`, and wraps the body of each function in a call of
//! `crate::border::guard`, which the using crate defines. A function that does not return a `PyResult` is changed to
//! return one.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use proc_macro2::Span;
use quote::ToTokens;
use syn::{Block, Error, ImplItem, Item, ReturnType, Signature, Type, parse_macro_input, parse_quote};

/// Guards a function, or all functions of an `impl` block.
#[proc_macro_attribute]
pub fn guarded(arguments: TokenStream, item: TokenStream) -> TokenStream {
    if !arguments.is_empty() {
        return Error::new(Span::call_site(), "guarded takes no arguments").into_compile_error().into();
    }
    match parse_macro_input!(item as Item) {
        Item::Fn(mut function) => {
            guard(&mut function.sig, &mut function.block);
            function.into_token_stream().into()
        }
        Item::Impl(mut block) => {
            for item in &mut block.items {
                if let ImplItem::Fn(function) = item {
                    guard(&mut function.sig, &mut function.block);
                }
            }
            block.into_token_stream().into()
        }
        other => Error::new_spanned(other, "guarded applies to a function or an impl block")
            .into_compile_error()
            .into(),
    }
}

/// Returns true if a type is written as a `PyResult`.
fn is_result(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "PyResult")
}

fn guard(signature: &mut Signature, block: &mut Block) {
    // The interpreter's garbage collector accepts no errors, and this method does nothing that could panic.
    if signature.ident == "__traverse__" {
        return;
    }
    let kind: Type = match &signature.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, kind) => (**kind).clone(),
    };
    if is_result(&kind) {
        *block = parse_quote!({ crate::border::guard(move || -> #kind #block) });
        return;
    }
    // Two closures: a `return` in the body leaves the inner one.
    *block = parse_quote!({ crate::border::guard(move || Ok((move || -> #kind #block)())) });
    signature.output = parse_quote!(-> PyResult<#kind>);
}
