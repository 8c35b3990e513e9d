//! One random lane for each drawn quantity, separate from those of the other workloads. The numbers are part of the
//! data set (WORKLOAD-3): never reuse or renumber them.

/// And the two after it.
pub(super) const TIMES: u64 = 101;
pub(super) const EXTRA_LENGTH: u64 = 104;
pub(super) const EXTRA: u64 = 105;

pub(super) const FIRST_NAME: u64 = 110;
pub(super) const LAST_NAME: u64 = 111;
pub(super) const MAILBOX_LENGTH: u64 = 112;
pub(super) const MAILBOX: u64 = 113;
pub(super) const DOMAIN_LENGTH: u64 = 114;
pub(super) const DOMAIN: u64 = 115;
pub(super) const CREDIT_CARD: u64 = 116;
pub(super) const CITY: u64 = 117;
pub(super) const STATE: u64 = 118;

pub(super) const ITEM_NAME_LENGTH: u64 = 130;
pub(super) const ITEM_NAME: u64 = 131;
pub(super) const DESCRIPTION_LENGTH: u64 = 132;
pub(super) const DESCRIPTION: u64 = 133;
pub(super) const INITIAL_BID: u64 = 134;
pub(super) const RESERVE: u64 = 135;
pub(super) const AUCTION_LENGTH: u64 = 136;
pub(super) const SELLER_IS_HOT: u64 = 137;
pub(super) const SELLER: u64 = 138;
pub(super) const CATEGORY: u64 = 139;

pub(super) const AUCTION_IS_HOT: u64 = 150;
pub(super) const AUCTION: u64 = 151;
pub(super) const BIDDER_IS_HOT: u64 = 152;
pub(super) const BIDDER: u64 = 153;
pub(super) const PRICE: u64 = 154;
pub(super) const CHANNEL_IS_HOT: u64 = 155;
pub(super) const HOT_CHANNEL: u64 = 156;
pub(super) const CHANNEL: u64 = 157;
pub(super) const FOLDER_LENGTH: u64 = 158;
pub(super) const FOLDER: u64 = 159;
pub(super) const HAS_CHANNEL_ID: u64 = 160;
