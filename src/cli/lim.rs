//! stub
use crate::conf::BaseConf;
use crate::proto::lim::*;
pub struct Site {
    base: BaseConf,
}
impl Site {
    pub fn open() -> Result<Site, String> {
        Err("stub".into())
    }
    pub fn base(&self) -> &BaseConf {
        &self.base
    }
    pub fn hosts(&self, _n: &[String]) -> Result<Vec<HostLoad>, String> {
        Err("stub".into())
    }
    pub fn shared(&self) -> Result<Vec<SharedRow>, String> {
        Err("stub".into())
    }
}
