//! The commands of the page "Break glass", as they are printed, on an installation with everything enabled: they remove every
//! object that can reject a request, and the chart brings all of them back.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Result;
use kube::Client;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use pillion_e2e::bystanders::Bystanders;
use pillion_e2e::chart;
use pillion_e2e::page;
use pillion_testbed::{Bed, Config, Look, until};

/// Kinds of objects that can reject a request. A policy does nothing without its binding.
const KINDS: [&str; 3] =
    ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"];
/// Where the page goes on with restoring.
const RESTORE: &str = "\n## Restore";

/// Objects of Pillion that can reject a request, as `kind name`. A webhook configuration without webhooks rejects nothing.
async fn rejecting(client: &Client) -> Result<BTreeSet<String>, kube::Error> {
    let mut found = BTreeSet::new();
    for kind in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind));
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        for object in api.list(&ListParams::default()).await? {
            let name = object.name_any();
            let is_empty = object.data["webhooks"].as_array().is_some_and(Vec::is_empty);
            if (name == "pillion" || name.starts_with("pillion-")) && !is_empty {
                found.insert(format!("{} {name}", kind.to_ascii_lowercase()));
            }
        }
    }
    Ok(found)
}

#[tokio::test]
async fn ci_every_object_that_can_reject_is_removed_by_the_page_and_restored() -> Result<()> {
    let text = fs::read_to_string(page::root().join("docs/break-glass.md"))?;
    let (remove, restore) = text.split_once(RESTORE).unwrap_or((&text, ""));
    let bed = Bed::start(Config::control_plane("break-glass").with_node()).await?;
    let (cluster, client) = (bed.cluster(), bed.client().await?);
    let bystanders = Bystanders::arrive(cluster).await?;
    chart::said(chart::install_everything(cluster)?.output()?)?;
    let until_registered = || {
        until("the webhook to register itself", pillion_e2e::agents::PATIENCE, || async {
            Ok(match rejecting(&client).await {
                Ok(found) if found.iter().filter(|it| it.contains("webhookconfiguration")).count() == 2 => {
                    Look::Done(found)
                }
                Ok(found) => Look::NotYet(format!("{found:?}")),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
    };
    let before = until_registered().await?;
    let steps = page::steps(remove)?;
    let removed = steps.iter().filter_map(|step| step.command.strip_prefix("kubectl delete ")).map(str::to_owned);
    assert_eq!(removed.collect::<BTreeSet<String>>(), before, "the page and the installation");
    bystanders.require_injection().await?;

    page::follow(cluster, &steps)?;
    assert_eq!(rejecting(&client).await?, BTreeSet::new());
    // Where pods were rejected without the webhook, they are created.
    bystanders.work_where_nothing_rejects().await?;

    page::follow(cluster, &page::steps(restore)?)?;
    assert_eq!(until_registered().await?, before);
    bed.stop().await?;
    Ok(())
}
