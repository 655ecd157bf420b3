//! Amounts of the two resources that are sized.

use pillion_api::ResourceList;
use pillion_quantity::{Format, Quantity, Resource};

/// Whole millicores and whole bytes; `None` where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Millicores.
    pub cpu: Option<i64>,
    /// Bytes.
    pub memory: Option<i64>,
}

impl Amounts {
    /// Both resources, in the order of their names.
    pub const RESOURCES: [Resource; 2] = [Resource::Cpu, Resource::Memory];

    /// What is said of a resource.
    pub const fn get(&self, resource: Resource) -> Option<i64> {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
        }
    }

    /// What is said of a resource where amounts are bounds: zero is none.
    pub fn bound(&self, resource: Resource) -> Option<i64> {
        self.get(resource).filter(|amount| *amount != 0)
    }

    /// Says something of a resource.
    pub const fn set(&mut self, resource: Resource, amount: Option<i64>) {
        match resource {
            Resource::Cpu => self.cpu = amount,
            Resource::Memory => self.memory = amount,
        }
    }

    /// The amounts that are said.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, i64)> + use<> {
        let own = *self;
        Self::RESOURCES.into_iter().filter_map(move |resource| own.get(resource).map(|amount| (resource, amount)))
    }

    /// Whether nothing is said.
    pub const fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }

    /// Reads a list of Kubernetes; what is no quantity is not said. Parts of a millicore or byte count as a whole one.
    pub fn from_list(list: &ResourceList) -> Self {
        let read = |resource: Resource| list.get(resource.name()).and_then(|amount| Self::read(resource, &amount.0));
        Self { cpu: read(Resource::Cpu), memory: read(Resource::Memory) }
    }

    /// Reads one amount.
    pub fn read(resource: Resource, text: &str) -> Option<i64> {
        let quantity: Quantity = text.parse().ok()?;
        let whole = match resource {
            Resource::Cpu => quantity.milli_value(),
            Resource::Memory => quantity.value(),
        };
        whole.try_into().ok()
    }

    /// As a list of Kubernetes.
    pub fn to_list(&self) -> ResourceList {
        let write = |(resource, amount): (Resource, i64)| {
            let text = Self::write(resource, amount);
            (resource.name().to_owned(), k8s_openapi::apimachinery::pkg::api::resource::Quantity(text))
        };
        self.iter().map(write).collect()
    }

    /// One amount, as a person would write it.
    pub fn write(resource: Resource, amount: i64) -> String {
        let quantity = match resource {
            Resource::Cpu => Quantity::from_milli(amount),
            Resource::Memory => Quantity::from_units(amount, Format::BinarySi),
        };
        quantity.human(resource).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(amounts: &[(&str, &str)]) -> ResourceList {
        let quantity = |text: &str| k8s_openapi::apimachinery::pkg::api::resource::Quantity(text.to_owned());
        amounts.iter().map(|(resource, text)| ((*resource).to_owned(), quantity(text))).collect()
    }

    #[test]
    fn lists_are_read_in_whole_units_and_written_as_people_do() {
        let read = Amounts::from_list(&list(&[("cpu", "0.0251"), ("memory", "250Mi"), ("example.com/gpu", "1")]));
        assert_eq!(read, Amounts { cpu: Some(26), memory: Some(262_144_000) });
        assert_eq!(read.to_list(), list(&[("cpu", "26m"), ("memory", "250Mi")]));
        assert_eq!(Amounts::from_list(&list(&[("cpu", "much")])), Amounts::default());
        assert_eq!(Amounts::write(Resource::Memory, 126_805_489), "126805489");
        assert_eq!(Amounts::write(Resource::Cpu, 2000), "2");
    }
}
