//! What is at the destination already.

#[path = "support/bundles.rs"]
mod bundles;
#[path = "support/probed.rs"]
mod probed;
mod support;

use std::fs;
use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::Barrier;

use bundles::{files, gapped, names, publish_at};
use support::command::Folder;
use tmrun::bundle::{Moment, PublishFault, leftovers, plan, verify};
use tmrun::scan::Recording;
use tmrun::slice::Region;
use tmrun::trace::planned;
use tmrun_formats::bundle::PublicationStatus;
use tmrun_formats::trace::TraceRun;

fn step(file: &[u8], number: u64, root: &Path) -> Result<PublicationStatus, PublishFault> {
    let published = publish_at(file, Some(number), root, &mut |_| Ok(()));
    published.map(|published| published.receipt.status).map_err(|error| error.fault)
}

#[test]
fn the_same_planned_capture_is_found_and_another_one_is_in_the_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("around").join("step-2");
    let file = gapped();
    assert_eq!(step(&file, 2, &root).expect("free"), PublicationStatus::Published);
    let before = files(&root);
    assert_eq!(step(&file, 2, &root).expect("there"), PublicationStatus::AlreadyPublished);
    match step(&file, 3, &root) {
        Err(PublishFault::Conflict { fields, .. }) => {
            let fields: Vec<_> = fields.iter().map(|differing| differing.field).collect();
            assert_eq!(fields, ["capture_step"]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(files(&root), before);
    assert_eq!(names(root.parent().expect("around")), ["step-2"], "nothing is left beside");
}

#[test]
fn a_bundle_that_does_not_hold_is_no_publication() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    let file = gapped();
    step(&file, 2, &root).expect("free");
    fs::write(root.join("report.md"), "mine").expect("written");
    let refused = step(&file, 2, &root).expect_err("refused").to_string();
    assert!(refused.contains("report.md has another size"), "{refused}");
}

#[test]
fn whatever_is_there_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = gapped();
    let root = folder.path().join("bundle");
    let put: [fn(&Path) -> io::Result<()>; 4] = [
        |path| fs::create_dir(path),
        |path| fs::write(path, "mine"),
        |path| std::os::unix::fs::symlink("nowhere", path),
        |path| fs::create_dir(path).and_then(|()| fs::write(path.join("mine"), "mine")),
    ];
    for put in put {
        put(&root).expect("put");
        let seen = || (fs::symlink_metadata(&root).expect("there").file_type(), root.is_dir());
        let before = seen();
        // With a slash behind it, a link stands for what it leads to.
        for root in [&root, &folder.path().join("bundle/")] {
            assert!(matches!(step(&file, 2, root), Err(PublishFault::Occupied { .. })));
        }
        assert_eq!(seen(), before);
        assert_eq!(names(folder.path()), ["bundle"]);
        fs::remove_file(&root).or_else(|_| fs::remove_dir_all(&root)).expect("away");
    }
}

#[test]
fn an_empty_directory_that_comes_meanwhile_is_in_the_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    let mut create = |moment: Moment<'_>| match moment {
        Moment::Synced => fs::create_dir(&root),
        _ => Ok(()),
    };
    let error = publish_at(&gapped(), Some(2), &root, &mut create).expect_err("in the way");
    assert!(matches!(error.fault, PublishFault::Occupied { .. }), "{error}");
    assert_eq!(names(&root), Vec::<String>::new(), "it is as it was");
    let trace = error.trace.expect("the trace is kept");
    assert!(trace.exists() && trace.parent() == root.parent());
    assert_eq!(leftovers(&root), [trace], "and told of");
}

#[test]
fn nothing_is_published_in_a_bundle() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    let file = gapped();
    step(&file, 2, &root).expect("free");
    let before = files(&root);
    std::os::unix::fs::symlink(&root, folder.path().join("link")).expect("a link");
    fs::create_dir(folder.path().join("beside")).expect("a folder");
    let (here, within) = (names(folder.path()), names(&root));
    for inside in [
        "bundle/new",
        "bundle/a/b/new",
        "link/new",
        "beside/../bundle/x/new",
        "missing/../bundle/new",
        "beside/missing/../../bundle/nsight/new",
        "missing/x/../../link/a/../b/new",
        "link/missing/../../beside/../bundle/new",
    ] {
        let inside = folder.path().join(inside);
        let refused = step(&file, 3, &inside).expect_err("refused");
        assert!(matches!(refused, PublishFault::Inside { .. }), "{inside:?}: {refused}");
        let refused = plan(&inside, &run_of(&file, 3)).expect_err("refused").fault;
        assert!(matches!(refused, PublishFault::Inside { .. }), "{inside:?}: {refused}");
        assert_eq!(names(&folder.path().join("beside")), Vec::<String>::new(), "{inside:?}");
        assert_eq!((names(folder.path()), names(&root)), (here.clone(), within.clone()));
    }
    assert_eq!(files(&root), before);
    step(&file, 3, &root.join("../other")).expect("that is outside");
    for no_name in ["..", "/", "a/.."] {
        let refused = step(&file, 3, Path::new(no_name)).expect_err("refused");
        assert!(matches!(refused, PublishFault::NoName { .. }), "{no_name}: {refused}");
    }
}

/// The run of a step's trace.
fn run_of(file: &[u8], number: u64) -> TraceRun {
    let recording = Recording::open(file, "run.tmrun").expect("a header");
    planned(&recording, &Region::of(&recording, Some(number)).expect("the step"))
}

#[test]
fn a_directory_that_becomes_a_bundle_meanwhile_gets_no_other_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, file) = (folder.path().join("bundle"), gapped());
    for inside in ["new", "a/new", "a/b/new", "../missing/../bundle/a/new"] {
        let mut publish = |moment: Moment<'_>| match moment {
            Moment::Free => step(&file, 2, &root).map(drop).map_err(io::Error::other),
            _ => Ok(()),
        };
        let refused = publish_at(&file, Some(3), &root.join(inside), &mut publish);
        let refused = refused.expect_err("refused").fault;
        assert!(matches!(refused, PublishFault::Inside { .. }), "{inside}: {refused}");
        assert!(verify(&root).receipt.is_some());
        assert!(!root.join("a").exists(), "{inside}");
        fs::remove_dir_all(&root).expect("away");
    }
}

#[test]
fn two_publishers_of_one_capture_publish_it_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = gapped();
    for round in 0..20 {
        let root = folder.path().join(round.to_string());
        let meet = Barrier::new(2);
        let one = || {
            let mut wait = |moment: Moment<'_>| {
                if moment == Moment::Synced {
                    meet.wait();
                }
                Ok(())
            };
            publish_at(&file, Some(2), &root, &mut wait).expect("published").receipt
        };
        let (mut a, mut b) = std::thread::scope(|scope| {
            let other = scope.spawn(one);
            (one(), other.join().expect("it ends"))
        });
        if a.status != PublicationStatus::Published {
            std::mem::swap(&mut a, &mut b);
        }
        let expected = (PublicationStatus::Published, PublicationStatus::AlreadyPublished);
        assert_eq!((a.status, b.status), expected);
        assert_eq!(a.verification, b.verification);
        assert!(verify(&root).receipt.is_some());
    }
    assert_eq!(names(folder.path()).len(), 20, "nothing else is left");
}

#[test]
fn of_two_publishers_of_two_captures_one_wins_and_the_other_keeps_its_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    let file = gapped();
    let meet = Barrier::new(2);
    let one = |number| {
        let mut wait = |moment: Moment<'_>| {
            if moment == Moment::Synced {
                meet.wait();
            }
            Ok(())
        };
        publish_at(&file, Some(number), &root, &mut wait)
    };
    let results = std::thread::scope(|scope| {
        let other = scope.spawn(|| one(3));
        [one(2), other.join().expect("it ends")]
    });
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 1));
    let error = lost.into_iter().find_map(Result::err).expect("an error");
    assert!(matches!(error.fault, PublishFault::Conflict { .. }), "{error}");
    assert!(error.trace.expect("kept").exists());
    assert!(verify(&root).receipt.is_some());
}

#[test]
fn commands_that_race_publish_one_capture_once_and_of_two_one() {
    let folder = Folder::with(&gapped());
    let start = |step, root: &str| {
        let arguments = ["bundle", "in.tmrun", "--step", step, "-o", root];
        folder.command(&arguments).spawn().expect("it starts")
    };
    // The exit code, the receipt's status if there is one, and what was said.
    let end = |child: Child| {
        let output = child.wait_with_output().expect("it ends");
        let receipt = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
        let status = receipt.and_then(|receipt| receipt["status"].as_str().map(str::to_owned));
        let said = String::from_utf8(output.stderr).expect("text");
        (status, output.status.code().expect("an exit code"), said)
    };
    let mut kept = Vec::new();
    for round in 0..10 {
        let [same, other] = ["same", "other"].map(|name| format!("{name}{round}"));
        let mut found = ["2", "2"].map(|step| start(step, &same)).map(end);
        found.sort();
        let [again, first] = found.map(|(status, code, _)| (status, code));
        assert_eq!(again, (Some("already_published".to_owned()), 3));
        assert_eq!(first, (Some("published".to_owned()), 3));

        let mut found = ["2", "3"].map(|step| start(step, &other)).map(end);
        found.sort();
        let [(none, lost, said), (won, ..)] = found;
        assert_eq!((none, lost, won.as_deref()), (None, 1, Some("published")), "{said}");
        // Whoever comes late enough to see the other's has written no trace.
        let traces = names(&folder.path("")).into_iter().filter(|name| name.contains("trace"));
        let new: Vec<_> = traces.filter(|name| !kept.contains(name)).collect();
        assert!(new.len() <= 1 && new.iter().all(|name| said.contains(name)), "{new:?}: {said}");
        kept.extend(new);
        for root in [same, other] {
            assert!(verify(&folder.path(&root)).receipt.is_some());
        }
    }
    assert_eq!(names(&folder.path("")).len(), 1 + 20 + kept.len(), "nothing else is left");
}

#[test]
fn a_retry_that_planned_something_else_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("bundle");
    let [first, second] = ["first", "second"].map(|name| {
        let path = folder.path().join(name);
        bundles::inference(&path)
    });
    publish_at(&first, None, &root, &mut |_| Ok(())).expect("free");
    let again = publish_at(&second, None, &root, &mut |_| Ok(())).expect("the same capture");
    assert_eq!(again.receipt.status, PublicationStatus::AlreadyPublished);
    let fields: Vec<_> = again.differing.iter().map(|differing| differing.field).collect();
    assert_eq!(fields, ["run_id"], "another run of it");
}

#[test]
fn the_command_publishes_under_a_bare_name_and_says_so() {
    let folder = Folder::with(&gapped());
    let (code, out, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "2", "-o", "bundle"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("lost 2 records in 1 gap (corrupt 1)"), "{err}");
    let receipt: serde_json::Value = serde_json::from_str(&out).expect("a receipt");
    assert_eq!(receipt["schema"], "candle-graph/publication/1");
    assert_eq!(receipt["status"], "published");
    assert_eq!(receipt["bundle_path"], "bundle");
    assert_eq!(receipt["verification"]["files_verified"], 5);
    let theirs: candle_graph_v10::PublicationReceipt = serde_json::from_str(&out).expect("theirs");
    assert_eq!(theirs.run_id, "run-7/step-2");

    let (code, out, _) = folder.tmrun(&["bundle", "in.tmrun", "--step", "2", "-o", "./bundle/"]);
    assert_eq!(code, 3);
    assert!(out.contains("already_published"), "{out}");
    let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "1", "-o", "bundle"]);
    assert_eq!(code, 1);
    assert!(err.contains("its capture_step is 2, not 1"), "{err}");
    let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "-o", "other"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--step"), "{err}");
    let (code, _, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "9", "-o", "other"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("steps 1 to 3"), "{err}");
    assert!(!folder.path("other").exists());

    let (code, out, err) = folder.tmrun(&["verify", "bundle", "--semantic"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, _, err) = folder.tmrun(&["info", "in.tmrun", "--json", "-o", "bundle/info.json"]);
    assert_eq!(code, 1);
    assert!(err.contains("lies in the bundle"), "{err}");
}

#[test]
fn a_trace_that_does_not_hold_together_is_published_and_said_to_be() {
    let folder = Folder::with(b"");
    let file = bundles::nan_gradient(&folder.path("nan.tmrun"));
    let published = publish_at(&file, None, &folder.path("by-hand"), &mut |_| Ok(()));
    let invalid = published.expect("published").invalid.expect("a gradient is NaN");
    for status in ["published", "already_published"] {
        let (code, out, err) = folder.tmrun(&["bundle", "nan.tmrun", "-o", "bundle"]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains(&format!("\"{status}\"")), "{out}");
        assert_eq!(err, format!("bundle: its trace is {invalid}\n"), "one line");
    }
    let evidence = fs::read(folder.path("bundle/evidence.json")).expect("it");
    let evidence: serde_json::Value = serde_json::from_slice(&evidence).expect("JSON");
    let issues = evidence["health"]["issues"].as_array().expect("issues");
    let errors: Vec<_> = issues.iter().filter(|issue| issue["severity"] == "error").collect();
    assert_eq!(invalid.errors, errors.len() as u64);
    assert_eq!(errors[0]["code"], *invalid.code);
    let (code, _, _) = folder.tmrun(&["summary", "--require-valid", "bundle"]);
    assert_eq!(code, 1, "that is the question");

    fs::write(folder.path("in.tmrun"), gapped()).expect("written");
    let (_, _, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "2", "-o", "other"]);
    assert!(!err.contains("invalid"), "{err}");
}

#[test]
fn what_nsight_left_is_kept_file_by_file() {
    let folder = Folder::with(&gapped());
    let nsight = folder.path("left");
    let arguments = ["bundle", "in.tmrun", "--step", "2", "-o", "bundle", "--nsight", "left"];
    let refused = |why: &str| {
        let (code, _, err) = folder.tmrun(&arguments);
        assert_eq!(code, 1, "{err}");
        assert!(err.contains(why), "{err}");
        assert!(!folder.path("bundle").exists());
    };
    fs::create_dir(&nsight).expect("a folder");
    refused("is empty");
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/trace/ok-op.jsonl");
    let theirs = folder.path("theirs");
    candle_graph_v10::publish_bundle(&theirs, trace.as_ref(), Some(&nsight)).expect("they take it");
    assert_eq!(names(&theirs.join("nsight")), Vec::<String>::new());
    fs::write(nsight.join("capture.nsys-rep"), b"raw").expect("written");
    fs::create_dir(nsight.join("below")).expect("a folder");
    refused("below: is no regular file");
    fs::remove_dir(nsight.join("below")).expect("away");
    std::os::unix::fs::symlink("capture.nsys-rep", nsight.join("link")).expect("a link");
    refused("link: is no regular file");
    fs::remove_file(nsight.join("link")).expect("away");
    let (code, _, err) = folder.tmrun(&arguments);
    assert_eq!(code, 3, "{err}");
    assert_eq!(files(&folder.path("bundle"))["nsight/capture.nsys-rep"], b"raw");
    assert_eq!(
        names(&folder.path("")),
        ["bundle", "in.tmrun", "left", "theirs"],
        "nothing is left behind"
    );
    let again = |what: &str| {
        let (code, out, err) = folder.tmrun(&arguments);
        assert_eq!(code, 3, "{err}");
        assert!(out.contains("already_published"), "{out}");
        assert_eq!(err.contains("nsight"), !what.is_empty(), "{err}");
        assert!(err.contains(what), "{err}");
    };
    again("");
    fs::write(nsight.join("capture.nsys-rep"), b"another").expect("written");
    again("nsight/capture.nsys-rep with sha256");
    fs::rename(nsight.join("capture.nsys-rep"), nsight.join("other")).expect("renamed");
    again("without nsight/capture.nsys-rep");
    candle_graph_v10::verify_bundle(&folder.path("bundle")).expect("the neighbour takes it");
    let (code, out, err) = folder.tmrun(&["verify", "bundle", "--semantic"]);
    assert_eq!(code, 0, "{out}{err}");
}
