//! What agents with a configuration need, and are therefore allowed: nothing but what the configuration names.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Config, PluginConfig, Storage, TriggerFrom, names};

/// What agents with a configuration need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Labels of their pod that they set.
    pub labels: BTreeSet<String>,
    /// Annotations of their pod that they set.
    pub annotations: BTreeSet<String>,
    /// Conditions of their pod that they set. Those that the pod's own annotation [`names::POD_PROBES`] names come on top
    /// where [`Self::pod_probes`] says so.
    pub conditions: BTreeSet<String>,
    /// Whether they set the conditions that the pod's annotation names.
    pub pod_probes: bool,
    /// The field of an object of their pod's name that they set.
    pub target: Option<TargetRight>,
    /// What they set it to, and nothing else.
    pub values: BTreeSet<String>,
    /// `ConfigMaps` of their pod's namespace that they read.
    pub config_maps: BTreeSet<String>,
    /// Whether they ask the API server whose a token is.
    pub token_reviews: bool,
}

/// A field of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetRight {
    /// API group; empty for the core.
    pub group: String,
    /// Version.
    pub version: String,
    /// The plural.
    pub resource: String,
    /// JSON pointer of the field.
    pub pointer: String,
}

/// A rule of a Role, with the field names of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleRule {
    /// `""` is the core.
    pub api_groups: Vec<String>,
    /// Plurals, with `/` before a part of one.
    pub resources: Vec<String>,
    /// Names of objects; all where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
}

impl Rights {
    /// The rights of a configuration; variables need not be replaced in it.
    pub fn of(config: &Config) -> Self {
        let mut rights = Self::default();
        for plugin in &config.plugins {
            match &plugin.config {
                PluginConfig::HttpProbe(_) => {}
                PluginConfig::PodProbe(_) => rights.pod_probes = true,
                PluginConfig::HotUpdate(update) => {
                    rights.annotations.insert(names::RESULT.to_owned());
                    rights.conditions.insert(names::CONDITION.to_owned());
                    rights.token_reviews |= update.listener.is_some();
                    if let TriggerFrom::ConfigMap(name) = &update.trigger {
                        rights.config_maps.insert(name.clone());
                    }
                }
            }
            for storage in plugin.config.storages() {
                rights.add(storage);
            }
        }
        rights
    }

    fn add(&mut self, storage: &Storage) {
        self.labels.extend(storage.label_key.clone());
        self.annotations.extend(storage.annotation_key.clone());
        self.conditions.extend(storage.condition_type.clone());
        for policy in &storage.marker_policies {
            self.labels.extend(policy.labels.keys().cloned());
            self.annotations.extend(policy.annotations.keys().cloned());
            self.values.extend(policy.value.clone());
        }
        // Where no policy has a value nothing is ever written there.
        let writes = storage.marker_policies.iter().any(|policy| policy.value.is_some());
        if let Some(target) = storage.target.as_ref().filter(|_| writes) {
            let (group, version) = (target.group.clone(), target.version.clone());
            let (resource, pointer) = (target.resource.clone(), target.pointer.clone());
            self.target = Some(TargetRight { group, version, resource, pointer });
        }
    }

    /// Whether they patch the status of their pod, through which labels, annotations and conditions go.
    pub fn pod_status(&self) -> bool {
        self.pod_probes || [&self.labels, &self.annotations, &self.conditions].iter().any(|keys| !keys.is_empty())
    }

    /// The data of the `ConfigMap` [`names::POLICY_PARAMS`] for a configuration: one key for each list, one line for each item.
    /// Empty lists have their key too.
    pub fn policy_params(&self, config: &str) -> BTreeMap<String, String> {
        let lines = |items: &BTreeSet<String>| items.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let target = self.target.as_ref().map(TargetRight::to_string).unwrap_or_default();
        let lists = [
            ("labels", lines(&self.labels)),
            ("annotations", lines(&self.annotations)),
            ("conditions", lines(&self.conditions)),
            ("values", lines(&self.values)),
            ("target", target),
        ];
        lists.into_iter().map(|(list, text)| (format!("{config}.{list}"), text)).collect()
    }

    /// The rules of the Role in their pod's namespace. That of token reviews is not among them: those concern the whole
    /// cluster.
    pub fn role_rules(&self) -> Vec<RoleRule> {
        let rule = |group: &str, resource: &str, names: Vec<String>, verbs: &[&str]| RoleRule {
            api_groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            resource_names: names,
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        };
        let mut rules = Vec::new();
        if self.pod_status() {
            rules.push(rule("", "pods/status", Vec::new(), &["patch"]));
        }
        if !self.config_maps.is_empty() {
            rules.push(rule("", "configmaps", self.config_maps.iter().cloned().collect(), &["get", "watch"]));
        }
        if let Some(target) = &self.target {
            rules.push(rule(&target.group, &target.resource, Vec::new(), &["patch"]));
        }
        rules
    }
}

/// `group/resource`, as the policies compare it.
impl std::fmt::Display for TargetRight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.group, self.resource)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GAME: &str = "
plugins:
- name: http_probe
  config:
    endpoints:
    - url: http://localhost
      storageConfig:
        inKube:
          annotationKey: example.com/state
          conditionType: game.kruise.io/idle
          target: {group: game.kruise.io, version: v1alpha1, resource: gameservers}
          jsonPath: /spec/opsState
          markerPolicies:
          - {state: idle, value: None, labels: {idle: 'true'}}
          - {state: busy, value: Allocated, labels: {idle: 'false'}, annotations: {busy: '1'}}
- name: hot_update
  config:
    fileDir: /app
    loadPatchType: signal
    signal: {processName: app, signalName: SIGHUP}
    allowedSources: [https://files.example.com/]
    trigger: {configMap: rules}
    listener: {certificate: /c, key: /k, users: [me]}
    storageConfig: {inKube: {labelKey: version}}
";

    fn rights(text: &str) -> Rights {
        Rights::of(&Config::parse(text, None).unwrap())
    }

    fn set(items: &[&str]) -> BTreeSet<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn a_configuration_needs_what_it_names() {
        let target = TargetRight {
            group: "game.kruise.io".to_owned(),
            version: "v1alpha1".to_owned(),
            resource: "gameservers".to_owned(),
            pointer: "/spec/opsState".to_owned(),
        };
        let expected = Rights {
            labels: set(&["idle", "version"]),
            annotations: set(&["busy", "example.com/state", "pillion.dev/hot-update-result"]),
            conditions: set(&["game.kruise.io/idle", "pillion.dev/HotUpdate"]),
            pod_probes: false,
            target: Some(target),
            values: set(&["Allocated", "None"]),
            config_maps: set(&["rules"]),
            token_reviews: true,
        };
        let found = rights(GAME);
        assert_eq!(found, expected);
        let data: Vec<_> = found.policy_params("games").into_iter().collect();
        assert_eq!(
            data,
            [
                ("games.annotations", "busy\nexample.com/state\npillion.dev/hot-update-result"),
                ("games.conditions", "game.kruise.io/idle\npillion.dev/HotUpdate"),
                ("games.labels", "idle\nversion"),
                ("games.target", "game.kruise.io/gameservers"),
                ("games.values", "Allocated\nNone"),
            ]
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
        );
        assert_eq!(
            serde_json::to_value(found.role_rules()).unwrap(),
            json!([
                {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
                {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["rules"], "verbs": ["get", "watch"]},
                {"apiGroups": ["game.kruise.io"], "resources": ["gameservers"], "verbs": ["patch"]},
            ])
        );
    }

    #[test]
    fn a_target_without_values_needs_no_right() {
        let text = GAME.replace("value: None, ", "").replace("value: Allocated, ", "");
        assert_eq!((rights(&text).target, rights(&text).values), (None, set(&[])));
    }

    #[test]
    fn a_configuration_that_only_counts_needs_nothing() {
        let metric = "
plugins:
- name: http_probe
  config: {endpoints: [{url: 'http://localhost', storageConfig: {httpMetric: {metricName: players}}}]}
metricsPort: 9464
";
        assert_eq!((rights(metric), rights(metric).role_rules()), (Rights::default(), vec![]));
        let probes = rights("plugins: [{name: pod_probe}]");
        assert_eq!(probes, Rights { pod_probes: true, ..Rights::default() });
        assert_eq!(probes.role_rules().len(), 1);
    }
}
