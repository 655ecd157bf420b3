//! Samples of the API `metrics.k8s.io`: one list for the whole cluster, read pod by pod without a tree of it.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use kube::Client;
use pillion_quantity::Resource;
use pillion_rightsize::{Amounts, Usage};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Sample, Taker};

const PATH: &str = "/apis/metrics.k8s.io/v1beta1/pods";

/// The API `metrics.k8s.io`, whoever serves it.
pub(crate) struct MetricsServer {
    pub(crate) client: Client,
}

#[derive(Deserialize)]
struct RawPod<'a> {
    #[serde(borrow)]
    metadata: RawMetadata<'a>,
    timestamp: Timestamp,
    #[serde(borrow, default)]
    containers: Vec<RawContainer<'a>>,
}

#[derive(Deserialize)]
struct RawMetadata<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct RawContainer<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    usage: RawUsage<'a>,
}

#[derive(Default, Deserialize)]
struct RawUsage<'a> {
    #[serde(borrow)]
    cpu: Option<Cow<'a, str>>,
    #[serde(borrow)]
    memory: Option<Cow<'a, str>>,
}

impl MetricsServer {
    pub(super) async fn read(&self, taker: &mut dyn Taker) -> Result<(), String> {
        let request = http::Request::get(PATH).body(Vec::new()).map_err(|error| error.to_string())?;
        let text = self.client.request_text(request).await.map_err(|error| format!("metrics.k8s.io: {error}"))?;
        read_list(&text, taker)
    }
}

/// Reads a list of pods with what they used, as the API serves it.
pub fn read_list(text: &str, taker: &mut dyn Taker) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    List(taker).deserialize(&mut reader).map_err(|error| format!("metrics.k8s.io: the list cannot be read: {error}"))
}

/// The object with the list in it.
struct List<'t>(&'t mut dyn Taker);
/// The list.
struct Items<'t>(&'t mut dyn Taker);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with items")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == "items" {
                map.next_value_seed(Items(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of pods")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        // A list without pods is written as null.
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(pod) = items.next_element::<RawPod<'de>>()? {
            let (namespace, name) = (&*pod.metadata.namespace, &*pod.metadata.name);
            if !self.0.wants(namespace, name) {
                continue;
            }
            for container in &pod.containers {
                let amount = |resource, text: &Option<Cow<'_, str>>| Amounts::read(resource, text.as_deref()?);
                let usage = Usage {
                    at: pod.timestamp,
                    cpu: amount(Resource::Cpu, &container.usage.cpu),
                    memory: amount(Resource::Memory, &container.usage.memory),
                };
                self.0.take(&Sample { namespace, pod: name, container: &container.name, usage });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Taken(Vec<String>);

    impl Taker for Taken {
        fn wants(&self, namespace: &str, _: &str) -> bool {
            namespace != "other"
        }

        fn take(&mut self, sample: &Sample<'_>) {
            let Sample { namespace, pod, container, usage } = sample;
            let Usage { at, cpu, memory } = usage;
            self.0.push(format!("{namespace}/{pod} {container} {at} {cpu:?} {memory:?}"));
        }
    }

    fn taken(text: &str) -> Result<Vec<String>, String> {
        let mut taken = Taken::default();
        read_list(text, &mut taken).map(|()| taken.0)
    }

    #[test]
    fn pods_are_read_one_by_one_with_parts_of_a_millicore_counted_up() {
        let list = r#"{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[
            {"metadata":{"name":"web-1","namespace":"shop","creationTimestamp":null,"labels":{"a":"b"}},
             "timestamp":"2026-01-02T03:04:05Z","window":"12.5s",
             "containers":[{"name":"app","usage":{"cpu":"12345678n","memory":"1024Ki"}},{"name":"proxy","usage":{"cpu":"0","memory":"much"}},
                {"name":"no\"quotes","usage":{}}]},
            {"metadata":{"name":"x","namespace":"other"},"timestamp":"2026-01-02T03:04:05Z","containers":[{"name":"app","usage":{"cpu":"1"}}]}]}"#;
        assert_eq!(
            taken(list).unwrap(),
            [
                "shop/web-1 app 2026-01-02T03:04:05Z Some(13) Some(1048576)",
                "shop/web-1 proxy 2026-01-02T03:04:05Z Some(0) None",
                "shop/web-1 no\"quotes 2026-01-02T03:04:05Z None None",
            ]
        );
        assert_eq!(taken(r#"{"items":null}"#), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_list_is_told() {
        for (text, wrong) in [
            ("[]", "metrics.k8s.io: the list cannot be read: invalid type: sequence, expected an object with items"),
            (
                r#"{"items":3}"#,
                "metrics.k8s.io: the list cannot be read: invalid type: integer `3`, expected a list of pods",
            ),
        ] {
            let told = taken(text).unwrap_err();
            assert!(told.starts_with(wrong), "{told}");
        }
    }
}
