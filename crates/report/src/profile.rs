//! What does Wireshark need to show an annotated capture at a glance? A configuration profile:
//! columns, colours, and a button for each cause that searches the comments.

use std::fmt::Write as _;

use tcpwhy_core::Cause;

use crate::answer::{Class, class};

/// The files of the profile, by name.
pub fn files() -> [(&'static str, String); 4] {
    [
        ("preferences", preferences()),
        ("colorfilters", colours()),
        ("dfilter_buttons", buttons()),
        (RECENT, recent()),
    ]
}

/// The file in which Wireshark stores the state of its window.
pub const RECENT: &str = "recent";

/// Title, field and width in pixels.
const COLUMNS: [(&str, &str, u32); 10] = [
    ("No.", "%m", 64),
    ("Time", "%t", 104),
    ("Source", "%s", 124),
    ("Destination", "%d", 124),
    ("Stream", "%Cus:tcp.stream:0:R", 62),
    ("Since before", "%Cus:tcp.time_delta:0:R", 104),
    ("In flight", "%Cus:tcp.analysis.bytes_in_flight:0:R", 70),
    ("Window", "%Cus:tcp.window_size:0:R", 74),
    ("Why", "%Cus:frame.comment:0:R", 520),
    ("Info", "%i", 400),
];

/// Finds the packets whose comment names a cause.
fn filter(cause: Cause) -> String {
    format!("frame.comment contains \"({cause})\"")
}

/// Background and foreground by class; the hues are those of the page, light enough for black text.
fn colour(cause: Cause) -> &'static str {
    match class(cause) {
        Class::Mechanism => "[63479,48059,42148][0,0,0]",
        Class::Trouble => "[65535,57568,36494][0,0,0]",
        Class::Program => "[48316,57054,64764][0,0,0]",
        Class::Path => "[51143,60395,54998][0,0,0]",
        Class::Unknown => "[60395,52428,60395][0,0,0]",
    }
}

/// Rules are tried in order: what can be changed comes before what any exchange needs.
fn colours() -> String {
    let mut out = String::from("# Colours of tcpwhy's comments; made by tcpwhy wireshark-profile.\n");
    let mut causes = Cause::ALL;
    causes.sort_by_key(|cause| class(*cause) == Class::Path);
    for cause in causes {
        let _ = writeln!(out, "@tcpwhy {cause}@{}@{}", filter(cause), colour(cause));
    }
    out.push_str("@tcpwhy, cited@frame.comment contains \"tcpwhy: \"@[61680,61680,61680][0,0,0]\n");
    out
}

fn buttons() -> String {
    let mut out = String::from("# Buttons of tcpwhy's causes; made by tcpwhy wireshark-profile.\n");
    out.push_str("\"TRUE\",\"tcpwhy//all comments\",\"frame.comment contains \\x22tcpwhy: \\x22\",\"\"\n");
    for cause in Cause::ALL {
        let _ =
            writeln!(out, "\"TRUE\",\"tcpwhy//{cause}\",\"frame.comment contains \\x22({cause})\\x22\",\"\"");
    }
    out
}

fn preferences() -> String {
    let list: Vec<String> = COLUMNS
        .iter()
        .flat_map(|(title, field, _)| [format!("\"{title}\""), format!("\"{field}\"")])
        .collect();
    format!(
        "# Columns of tcpwhy; made by tcpwhy wireshark-profile.\n\
         gui.column.format: \n\t{}\n\
         tcp.calculate_timestamps: TRUE\ntcp.relative_sequence_numbers: TRUE\n",
        list.chunks(2).map(|pair| pair.join(", ")).collect::<Vec<_>>().join(",\n\t")
    )
}

/// A column is as wide as its usual content.
fn recent() -> String {
    // Wireshark 4.0 identifies a field's column there by the field alone.
    let field = |field: &'static str| field.trim_end_matches(":0:R");
    let widths: Vec<String> =
        COLUMNS.iter().map(|(_, of, width)| format!("\"{}\", {width}", field(of))).collect();
    format!(
        "# Widths of tcpwhy's columns; made by tcpwhy wireshark-profile.\ncolumn.width: {}\n",
        widths.join(", ")
    )
}
