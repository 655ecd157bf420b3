//! Which workloads autoscalers of ours size, so that the rollout leaves the resources of their containers alone.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use pillion_rightsize::{Autoscaler, Mode};
use pillion_rollout::{Sizer, Sizers};
use pillion_runtime::watch::{Changes, Freshness, Store};

use super::super::Context;
use crate::autoscalers::{Claimed, watch_autoscalers};
use crate::upstream::Upstream;

/// What the autoscalers of ours size.
pub(super) struct Sizing {
    autoscalers: Store<Arc<Claimed>>,
    upstream: Upstream,
    native_sidecars: bool,
}

impl Sizing {
    /// Watches them while the future runs; `None` where there is no right-sizing.
    pub(super) fn watch(context: &Context) -> (Option<Self>, BoxFuture<'static, ()>) {
        if !context.settings.sizing.rightsizing {
            return (None, std::future::ready(()).boxed());
        }
        let settings = &context.settings.sizing;
        let (autoscalers, driver) =
            watch_autoscalers(&context.client, settings, Freshness::Latest, &context.watch_metrics);
        let (upstream, upstream_driver) = Upstream::watch(&context.client);
        let own = Self { autoscalers, upstream, native_sidecars: context.native_sidecars };
        let driver = async {
            tokio::join!(driver, upstream_driver);
        };
        (Some(own), driver.boxed())
    }

    /// Waits until all of them are known.
    pub(super) async fn completed(&self) {
        self.autoscalers.completed().await;
        self.upstream.completed().await;
    }

    /// Tells when one of them changed.
    pub(super) fn changes(&self) -> Changes {
        self.autoscalers.changes()
    }

    /// What they size now.
    pub(super) fn sizers(&self) -> Sizers {
        let is_beside = self.upstream.is_beside();
        let mut all: Vec<Arc<Claimed>> = self.autoscalers.snapshot().into_values().collect();
        // Of several with one target the oldest holds, so it is said last.
        all.sort_by_key(|claimed| {
            let meaning = claimed.meaning.as_ref().ok();
            meaning.map(|own| std::cmp::Reverse((own.created, own.name.clone())))
        });
        let mut sizers = Sizers::default();
        for meaning in all.iter().filter_map(|claimed| claimed.meaning.as_ref().ok()) {
            if let Some(sizer) = sizer(meaning, is_beside, self.native_sidecars) {
                let target = &meaning.target;
                sizers.insert(&meaning.namespace, &target.kind, &target.name, sizer);
            }
        }
        sizers
    }
}

/// `None` for one that applies nothing.
fn sizer(meaning: &Autoscaler, is_beside: bool, native_sidecars: bool) -> Option<Sizer> {
    if meaning.effective_mode(is_beside) == Mode::Off {
        return None;
    }
    let named = meaning.containers.iter().filter(|(name, _)| name != "*");
    Some(Sizer {
        autoscaler: meaning.name.as_str().into(),
        sizes_others: !meaning.policy("*").is_off,
        named: named.map(|(name, _)| (name.as_str().into(), meaning.controls(name, is_beside))).collect(),
        native_sidecars,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meaning(mode: &str, policies: &serde_json::Value) -> Autoscaler {
        let object = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {
            "targetRef": {"kind": "Deployment", "name": "web"}, "updatePolicy": {"updateMode": mode},
            "resourcePolicy": {"containerPolicies": policies}}});
        Autoscaler::read(&serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn an_autoscaler_sizes_what_its_policies_say_while_it_applies_anything() {
        let off = |name: &str| json!({"containerName": name, "mode": "Off"});
        let on = |name: &str| json!({"containerName": name});
        let all = sizer(&meaning("Initial", &json!([off("proxy")])), false, true).unwrap();
        assert_eq!((all.sizes_others, all.named), (true, [("proxy".into(), false)].into()));
        let one = sizer(&meaning("Initial", &json!([off("*"), on("app")])), false, true).unwrap();
        assert_eq!((one.sizes_others, one.named), (false, [("app".into(), true)].into()));
        assert_eq!(sizer(&meaning("Off", &json!([])), false, true), None);
        assert_eq!(sizer(&meaning("Initial", &json!([])), true, true), None);
    }
}
