//! How does a file become a scenario? Variant and fix are merged over the base, overrides over
//! both, and `$name` is replaced by its value in `[set]`.

use std::str::FromStr;

use tcpwhy_twin::path::parse_duration;
use toml::{Table, Value};

use super::{Definition, Entry, Row, Scenario, ScenarioError};

/// `rtt=40ms`, `n=3`, `client.initcwnd=3`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The setting's name.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("`{text}`: expected NAME=VALUE, such as rtt=40ms")),
        }
    }
}

/// What can be set in every scenario, besides the names in its `[set]`.
const EVERYWHERE: &str = "rtt, delay (one way), rate, queue, loss, seed; congestion, initcwnd, initrwnd, mtu, rcvbuf and \
                          sndbuf of both hosts, or of one as client.NAME or server.NAME";

pub(super) fn entry(name: &str, text: &str) -> Result<Entry, ScenarioError> {
    let fail = |what: String| ScenarioError { scenario: name.to_owned(), what };
    let table: Table = text.parse().map_err(|error: toml::de::Error| fail(error.to_string()))?;
    let text_of = |table: &Table, key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
    let listed = |key| list(&table, key).map_err(fail);
    let (variants, fixes) = (listed("variant")?, listed("fix")?);
    let row = |table: &Table, form: String, fix: Option<&String>| {
        Some(Row { label: text_of(table, "row")?, form, fix: fix.cloned() })
    };
    let rows = row(&table, name.to_owned(), None)
        .into_iter()
        .chain(variants.iter().filter_map(|(variant, above)| row(above, format!("{name}@{variant}"), None)))
        .chain(fixes.iter().filter_map(|(fix, above)| row(above, name.to_owned(), Some(fix))))
        .collect();
    Ok(Entry {
        name: name.to_owned(),
        shows: text_of(&table, "shows").unwrap_or_default(),
        case: text_of(&table, "case"),
        variants: variants.into_iter().map(|(name, _)| name).collect(),
        fixes: fixes
            .into_iter()
            .map(|(name, fix)| (name, text_of(&fix, "what").unwrap_or_default()))
            .collect(),
        rows,
    })
}

pub(super) fn scenario(
    name: &str,
    text: &str,
    fix: Option<&str>,
    overrides: &[Override],
) -> Result<Scenario, String> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let (variants, fixes) = (list(&table, "variant")?, list(&table, "fix")?);
    table.remove("variant");
    table.remove("fix");
    let is_plain = fix.is_none() && !name.contains('@');
    let others = if is_plain { variants.clone() } else { Vec::new() };
    if let Some((_, variant)) = name.split_once('@') {
        let chosen = choose(variants, "variant", variant)?;
        leave_the_row(&mut table, &chosen);
        lay_over(&mut table, chosen);
    }
    if let Some(fix) = fix {
        // A fix changes the outcome, so the expectations are dropped.
        table.remove("expect");
        let mut chosen = choose(fixes, "fix", fix)?;
        chosen.remove("what");
        leave_the_row(&mut table, &chosen);
        lay_over(&mut table, chosen);
    }
    let mut set = match table.remove("set") {
        None => Table::new(),
        Some(Value::Table(set)) => set,
        Some(_) => return Err("`set` is not a table".to_owned()),
    };
    let (set_before, mut before) = (set.clone(), table.clone());
    for Override { key, value } in overrides {
        // A different seed is still the same problem.
        if key == "seed" && !set.contains_key(key) {
            set_everywhere(&mut before, &set, key, value)?;
        }
        if set.contains_key(key) {
            set.insert(key.clone(), Value::String(value.clone()));
        } else {
            set_everywhere(&mut table, &set, key, value)?;
        }
    }
    if table != before {
        expect_anything(&mut table);
    } else if set != set_before {
        match others.into_iter().find(|(_, other)| makes(other, &set_before, &set)) {
            Some((_, mut other)) => {
                let stated = other.remove("expect").unwrap_or_else(|| Value::Table(Table::new()));
                lay_over(&mut table, Table::from_iter([("expect".to_owned(), stated)]));
            }
            None => expect_anything(&mut table),
        }
    }
    let mut settings: Vec<(String, String)> =
        set.into_iter().map(|(key, value)| (key, as_text(&value))).collect();
    // `$rate` must not be read as `$r` followed by `ate`.
    settings.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    table.iter_mut().for_each(|(_, value)| substitute(value, &settings));

    let definition = Definition::deserialize_checked(table)?;
    Ok(Scenario {
        name: name.to_owned(),
        fix: fix.map(str::to_owned),
        shows: definition.shows.clone(),
        case: definition.case.clone(),
        reported: definition.reported.clone(),
        theory: definition.theory.clone(),
        row: definition.row.clone(),
        note: definition.note.clone(),
        transfer: definition.transfer()?,
        picture: definition.picture,
        pair: definition.pair()?,
        workload: definition.workload()?,
        expect: definition.expect.clone(),
        definition: toml::to_string(&definition).map_err(|error| error.to_string())?,
    })
}

impl Definition {
    fn deserialize_checked(table: Table) -> Result<Self, String> {
        if let Some(unknown) = unresolved(&Value::Table(table.clone())) {
            return Err(format!("`{unknown}` is not set in `[set]`"));
        }
        table.try_into().map_err(|error: toml::de::Error| error.to_string().trim().to_owned())
    }
}

/// The named tables of an array: variants or fixes.
fn list(table: &Table, key: &str) -> Result<Vec<(String, Table)>, String> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let named = |entry: &Value| {
        let mut entry = entry.as_table()?.clone();
        let Some(Value::String(name)) = entry.remove("name") else { return None };
        Some((name, entry))
    };
    value
        .as_array()
        .and_then(|entries| entries.iter().map(named).collect())
        .ok_or_else(|| format!("every [[{key}]] needs a name"))
}

/// A row of the table belongs to one form only; a form with its own row has been reported, or
/// predicted, separately.
fn leave_the_row(base: &mut Table, above: &Table) {
    base.remove("row");
    if above.contains_key("row") {
        for of_the_row in ["reported", "theory", "note"] {
            base.remove(of_the_row);
        }
    }
}

fn choose(all: Vec<(String, Table)>, kind: &str, name: &str) -> Result<Table, String> {
    let names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    all.into_iter().find(|(candidate, _)| candidate == name).map(|(_, table)| table).ok_or_else(|| {
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("there is no {kind} {name:?}; there are: {there}")
    })
}

/// Whether a variant consists only of these settings.
fn makes(variant: &Table, before: &Table, set: &Table) -> bool {
    let only_sets =
        variant.keys().all(|key| ["set", "expect", "shows", "row", "note"].contains(&key.as_str()));
    let mut made = before.clone();
    if let Some(Value::Table(above)) = variant.get("set") {
        lay_over(&mut made, above.clone());
    }
    only_sets
        && made.len() == set.len()
        && made.iter().zip(set).all(|(a, b)| a.0 == b.0 && as_text(a.1) == as_text(b.1))
}

/// The stated expectations are for other settings: the figure that a scenario is about stays, with
/// any value allowed.
fn expect_anything(table: &mut Table) {
    let Some(Value::Table(expect)) = table.get_mut("expect") else { return };
    expect.remove("causes");
    for figure in ["exchange", "slowest", "one_way", "setup"] {
        if let Some(range) = expect.get_mut(figure) {
            *range = Value::String("0ms..".to_owned());
        }
    }
}

/// Tables are merged, everything else is replaced.
fn lay_over(base: &mut Table, above: Table) {
    for (key, value) in above {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
            (_, value) => drop(base.insert(key, value)),
        }
    }
}

fn set_everywhere(table: &mut Table, set: &Table, key: &str, value: &str) -> Result<(), String> {
    let unknown = || {
        let own: Vec<&str> = set.keys().map(String::as_str).collect();
        let own = if own.is_empty() { String::new() } else { format!("{}; everywhere: ", own.join(", ")) };
        format!("`{key}` cannot be set here. What can: {own}{EVERYWHERE}")
    };
    let (sides, name) = match key.split_once('.') {
        None => (&["client", "server"][..], key),
        Some(("client", name)) => (&["client"][..], name),
        Some(("server", name)) => (&["server"][..], name),
        Some(_) => return Err(unknown()),
    };
    let section = |table: &mut Table, name: &str, key: &str, value: Value| {
        let section = table.entry(name.to_owned()).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(section) = section {
            section.insert(key.to_owned(), value);
        }
    };
    let number = || value.parse().map(Value::Integer).map_err(|_| format!("{key}: `{value}` is no number"));
    match name {
        "delay" => {
            let one_way = parse_duration(value).map_err(|error| error.to_string())?;
            let rtt = Value::String(format!("{}ns", one_way.times(2).as_nanos()));
            section(table, "path", "rtt", rtt);
        }
        "rtt" | "rate" | "queue" | "loss" => section(table, "path", name, Value::String(value.to_owned())),
        "seed" => section(table, "path", name, number()?),
        "congestion" => {
            for side in sides {
                section(table, side, name, Value::String(value.to_owned()));
            }
        }
        "initcwnd" | "initrwnd" | "mtu" => {
            let number = number()?;
            for side in sides {
                section(table, side, name, number.clone());
            }
        }
        "rcvbuf" | "sndbuf" => {
            for side in sides {
                let mut options = match table.get(*side).and_then(|host| host.get("socket")) {
                    Some(Value::Array(options)) => options.clone(),
                    _ => Vec::new(),
                };
                options.push(Value::String(format!("{name} {value}")));
                section(table, side, "socket", Value::Array(options));
            }
        }
        _ => return Err(unknown()),
    }
    Ok(())
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn substitute(value: &mut Value, settings: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (key, setting) in settings {
                *text = text.replace(&format!("${key}"), setting);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| substitute(value, settings)),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| substitute(value, settings)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

/// An unresolved `$name`.
fn unresolved(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let start = text.find('$')?;
            Some(text[start..].split_whitespace().next().unwrap_or_default().to_owned())
        }
        Value::Array(values) => values.iter().find_map(unresolved),
        Value::Table(table) => table.values().find_map(unresolved),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => None,
    }
}
