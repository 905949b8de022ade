//! Job files of each language: what they mean, and the words about their mistakes.

use super::*;

fn shown(file: Result<JobFile, String>) -> Result<String, String> {
    let file = file?;
    let mut words: Vec<String> = Vec::new();
    for line in file.options {
        words.push(line.iter().map(|w| w.to_str().unwrap()).collect::<Vec<_>>().join(" "));
    }
    words.extend(file.command.map(|c| format!("$ {}", c.to_str().unwrap())));
    Ok(words.join("; "))
}

fn of_json(text: &str) -> Result<String, String> {
    shown(json::read(text).and_then(keyed))
}

fn of_yaml(text: &str) -> Result<String, String> {
    shown(yaml::read(text).and_then(keyed))
}

fn of_jsdl(body: &str, strict: bool) -> Result<String, String> {
    let text = format!(
        "<?xml version=\"1.0\"?>\n<jsdl:JobDefinition xmlns:jsdl=\"{}\" xmlns:p=\"{}\" \
         xmlns:o=\"urn:other\">\n<jsdl:JobDescription>{body}</jsdl:JobDescription>\
         </jsdl:JobDefinition>",
        "http://schemas.ggf.org/jsdl/2005/11/jsdl",
        "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix",
    );
    shown(jsdl::read(&text, strict))
}

#[test]
fn json_and_yaml_name_options_as_bsub_does_and_by_longer_names() {
    let want = "-i /tmp/in; -outdir /tmp/out; -C 5; -c 2022:12; -hostfile /tmp/hosts; -q normal; \
                -r; -H; -G staff; -N; -Ne; -u user@example.com; $ myjob 'a b'";
    let json = r#"{
        "io": { "inputFile": "/tmp/in", "outputDir": "/tmp/out" },
        "limit": { "coreLimit": 5, "cpuTimeLimit": "2022:12" },
        "resource": { "hostFile": "/tmp/hosts" },
        "properties": { "queueName": "normal", "rerun": null, "x": false },
        "schedule": { "hold": "", "userGroup": "staff" },
        "notify": { "notifyJobDone": true, "notifyJobExit": "", "mailUser": "user@example.com" },
        "command": "myjob 'a b'"
    }"#;
    assert_eq!(of_json(json).as_deref(), Ok(want));
    let yaml = "io:\n  inputFile: /tmp/in\n  outputDir: /tmp/out\nlimit:\n  coreLimit: 5\n  \
                cpuTimeLimit: 2022:12\nresource:\n  hostFile: /tmp/hosts\nproperties:\n  \
                queueName: normal\n  rerun: null\n  x: false\nschedule:\n  hold: \"\"\n  \
                userGroup: staff\nnotify:\n  notifyJobDone: true\n  notifyJobExit:\n  mailUser: \
                user@example.com\ncommand: myjob 'a b'\n";
    assert_eq!(of_yaml(yaml).as_deref(), Ok(want));
    let repeated = "-R mem>1; -R order[ut]; -n 2,4; $ true";
    let json = r#"{"R": ["mem>1", "order[ut]"], "resource": {"n": "2,4"}, "command": "true"}"#;
    assert_eq!(of_json(json).as_deref(), Ok(repeated));
    let yaml = "R:\n- mem>1\n- order[ut]\nresource: {n: '2,4'}\ncommand: true\n";
    assert_eq!(of_yaml(yaml), Err("command: a text is expected".into()), "true is no text");
    assert_eq!(of_yaml(&yaml.replace("true", "'true'")).as_deref(), Ok(repeated));
    assert_eq!(of_json("{}").as_deref(), Ok(""));
    assert_eq!(of_yaml("limit:\ncommand: sleep 1").as_deref(), Ok("$ sleep 1"));
}

#[test]
fn mistakes_in_json_and_yaml_are_named() {
    for (text, why) in [
        ("[]", "keys and values are expected"),
        ("{\"limit\": 3}", "limit: keys and values are expected"),
        (
            "{\"limits\": {}}",
            "limits: no such category of options (there are io, limit, notify, properties, resource, schedule)",
        ),
        ("{\"io\": {\"zz\": 1}}", "zz: no such option"),
        ("{\"\": 1}", ": no such option"),
        ("{\"json\": \"again\"}", "json: no such option"),
        ("{\"pack\": \"f\"}", "pack: no such option"),
        ("{\"q\": null}", "q: the option requires a value"),
        ("{\"q\": [false]}", "q: the option requires a value"),
        ("{\"r\": \"x\"}", "r: the option takes no value"),
        ("{\"io\": {\"i\": {}}}", "i: a text or number is expected"),
        (
            "{\"q\": \"a\", \"properties\": {\"queueName\": \"b\"}}",
            "queueName: the option is there already",
        ),
        ("{\"command\": 5, \"command\": 6, \"q\": 1}", "command: the command is there already"),
        ("{\"command\": null}", "command: a text is expected"),
        ("{\n \"q\": }", "expected value at line 2 column 7"),
    ] {
        assert_eq!(of_json(text), Err(why.into()), "{text}");
    }
    for (text, why) in [
        ("- a", "keys and values are expected"),
        ("", "no document"),
        ("a: &x 1\nb: *x\n", "aliases are not supported at line 2 column 4"),
        ("q: a\n---\nq: b\n", "a second document at line 2 column 1"),
        ("? [a]\n: 1\n", "a key is not a text at line 1 column 3"),
    ] {
        assert_eq!(of_yaml(text), Err(why.into()), "{text}");
    }
    let open = of_yaml("q: [\n").unwrap_err();
    assert!(open.contains(" at line 2 column "), "{open}");
    let deep = format!("q: {}{}", "[".repeat(20), "]".repeat(20));
    assert!(of_yaml(&deep).unwrap_err().starts_with("nested too deep at line 1 column "));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(of_json(&deep).is_err() && of_yaml(&deep).is_err());
}

#[test]
fn jsdl_elements_become_options() {
    let body = "<jsdl:JobIdentification><jsdl:JobName>sim</jsdl:JobName>\
        <jsdl:JobProject>chip</jsdl:JobProject></jsdl:JobIdentification><jsdl:Application>\
        <p:POSIXApplication><p:Executable>/bin/echo</p:Executable><p:Argument>a b</p:Argument>\
        <p:Argument>it's</p:Argument><p:Input>in</p:Input><p:Output>out.%J</p:Output>\
        <p:Environment name=\"A\">1, 2</p:Environment><p:WallTimeLimit>61</p:WallTimeLimit>\
        <p:MemoryLimit>1048576.0</p:MemoryLimit><p:ThreadCountLimit>8</p:ThreadCountLimit>\
        </p:POSIXApplication></jsdl:Application><jsdl:Resources><jsdl:CandidateHosts>\
        <jsdl:HostName>h1</jsdl:HostName><jsdl:HostName>h2</jsdl:HostName></jsdl:CandidateHosts>\
        <jsdl:ExclusiveExecution>true</jsdl:ExclusiveExecution><jsdl:TotalCPUCount>\
        <jsdl:LowerBoundedRange>2.0</jsdl:LowerBoundedRange><jsdl:UpperBoundedRange>4\
        </jsdl:UpperBoundedRange></jsdl:TotalCPUCount></jsdl:Resources>";
    let want = "-J sim; -P chip; -i in; -o out.%J; -W 2; -M 1024KB; -T 8; -x; -n 2,4; -m h1 h2; \
                -env all, A=\"1, 2\"; $ /bin/echo 'a b' 'it'\\''s'";
    assert_eq!(of_jsdl(body, true).as_deref(), Ok(want));
    assert_eq!(of_jsdl(body, false).as_deref(), Ok(want));
}

#[test]
fn mistakes_in_jsdl_are_named() {
    for (body, strict, why) in [
        ("<jsdl:DataStaging/>", true, "DataStaging: is not supported at line 3 column 22"),
        ("<o:Queue>q</o:Queue>", false, "Queue: is not supported at line 3 column 22"),
        (
            "<o:Queue>q</o:Queue>",
            true,
            "Queue: is no element of JSDL or its POSIX application at line 3 column 22",
        ),
        (
            "<p:WallTimeLimit>soon</p:WallTimeLimit>",
            true,
            "WallTimeLimit: a whole number is expected at line 3 column 22",
        ),
        (
            "<p:Environment>1</p:Environment>",
            true,
            "Environment: the attribute name is missing at line 3 column 22",
        ),
        (
            "<jsdl:JobName>a</jsdl:JobName><jsdl:JobName>b</jsdl:JobName>",
            true,
            "JobName: is there already at line 3 column 52",
        ),
        (
            "<jsdl:JobName><o:b/></jsdl:JobName>",
            true,
            "b: is not expected here at line 3 column 36",
        ),
        ("<p:Argument>a</p:Argument>", true, "Argument: there is no Executable"),
        (
            "<jsdl:TotalCPUCount/>",
            true,
            "TotalCPUCount: one exact number, or the bounds of a range, are expected at line 3 \
             column 22",
        ),
    ] {
        assert_eq!(of_jsdl(body, strict), Err(why.into()), "{body}");
    }
    let other = jsdl::read("<a/>", true).unwrap_err();
    assert_eq!(other, "a: a JobDefinition of JSDL is expected at line 1 column 1");
    let dtd = "<!DOCTYPE a [<!ENTITY x SYSTEM \"/etc/passwd\">]><a>&x;</a>";
    assert!(jsdl::read(dtd, false).is_err());
}
