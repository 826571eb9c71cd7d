package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func TestRoots(t *testing.T) {
	w := newWorld(t)
	w.opts.Config.Roots = []string{filepath.Join(w.home, "none")}
	w.wants(w.examine(), "roots", Note, "no conversations yet", "config roots")
	w.opts.Config.Roots = []string{w.root, filepath.Join(w.home, "none")} // one of the defaults is enough
	w.silent(w.examine(), "roots")
	w.opts.Config.Roots = []string{w.opts.Config.Path}
	w.wants(w.examine(), "roots", Fail, "is not a folder", "config roots")
}

func TestElsewhere(t *testing.T) {
	w := newWorld(t)
	w.silent(w.examine(), "elsewhere")
	w.write(".claude-work/projects/-p/x.jsonl", "{}\n", 0)
	w.wants(w.examine(), "elsewhere", Note, "1 session in "+filepath.Join(w.home, ".claude-work", "projects"), "config roots")
}

// The daemon's roots count, whatever the caller's configuration; of much that it cannot read some is named.
func TestRootsOfTheDaemon(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.opts.Config.Roots = []string{filepath.Join(w.home, "none")}
	w.silent(w.examine(), "roots")
	x := newExam(t.Context(), w.opts)
	status := control.Status{Watch: &control.Watch{Roots: []string{w.root}}}
	for range mostNamed + 2 {
		status.Advice = append(status.Advice, control.Advice{Kind: "unreadable", Text: "cannot list /x: permission denied"})
	}
	x.daemon = func() reached { return reached{status: status} }
	found := checkRoots(t.Context(), x)
	kit.Check(t, len(found) == mostNamed+1 && found[0].Text == "cannot list /x: permission denied" && found[mostNamed].Text == "2 more folders or files cannot be read",
		"%+v", found)
}

// Folders that this user may not list, as a daemon and as this process meet them. Root may list everything.
func TestRootsUnreadable(t *testing.T) {
	modes(t)
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	w := newWorld(t)
	for _, name := range []string{"-a", "-b", "-c", "-d", "-e"} {
		w.write(".claude/projects/"+name+"/x.jsonl", "{}\n", 0)
		kit.Must(t, os.Chmod(filepath.Join(w.root, name), 0))
	}
	t.Cleanup(func() {
		for _, name := range []string{"-a", "-b", "-c", "-d", "-e"} {
			_ = os.Chmod(filepath.Join(w.root, name), 0o700)
		}
	})
	w.wants(w.examine(), "roots", Fail, "permission denied", "readable")
	w.start()
	w.status("it is told", func(s control.Status) bool { return len(s.Watch.Unread) == 5 })
	found := of(w.examine(), "roots")
	kit.Check(t, len(found) == mostNamed+1 && found[mostNamed].Text == "2 more folders or files cannot be read",
		"%+v", found)
}

func TestWatch(t *testing.T) {
	w := newWorld(t)
	w.opts.Proc = filepath.Join(w.home, "proc")
	w.write("proc/sys/fs/inotify/max_user_watches", "65536\n", 0)
	w.write("proc/sys/fs/inotify/max_user_instances", "128\n", 0)
	w.silent(w.examine(), "watch")
	w.write("proc/sys/fs/inotify/max_user_watches", "4096\n", 0)
	w.wants(w.examine(), "watch", Note, "max_user_watches is 4096", "`printf '%s\\n' fs.inotify.max_user_watches=524288 | sudo tee /etc/sysctl.d/60-inotify.conf && sudo sysctl --system`")
	w.write("proc/sys/fs/inotify/max_user_instances", "8\n", 0)
	w.wants(w.examine(), "watch", Note, "max_user_watches is 4096, max_user_instances is 8", "fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=1024 ")
}

// By polling because someone wants it so, and because the system has no more events to give.
func TestPolling(t *testing.T) {
	w := newWorld(t)
	w.opts.Proc = filepath.Join(w.home, "proc")
	w.opts.Config.Watch = "poll"
	w.start()
	w.silent(w.examine(), "watch")
	starving := &control.Watch{Mode: "poll", Reason: "no change events: too many open files"}
	x := newExam(t.Context(), w.opts)
	x.daemon = func() reached { return reached{status: control.Status{Watch: starving}} }
	f := checkWatch(t.Context(), x)
	kit.Check(t, len(f) == 1 && f[0].Level == Warn && strings.Contains(f[0].Text, "too many open files"), "%+v", f)
	w.write("proc/sys/fs/inotify/max_user_instances", "1\n", 0)
	if f := checkWatch(t.Context(), x); len(f) != 1 || f[0].Level != Warn || f[0].Detail != "this system's limits are low: max_user_instances is 1" || !strings.Contains(f[0].Fix, "max_user_instances=1024") {
		t.Errorf("%+v", f)
	}
}

func TestWSL(t *testing.T) {
	w := newWorld(t)
	w.opts.Proc = filepath.Join(w.home, "proc")
	w.write("proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2\n", 0)
	w.silent(w.examine(), "wsl")
	w.opts.Config.Roots = []string{"/mnt/c/Users/kim/.claude/projects"}
	w.wants(w.examine(), "wsl", Note, "/mnt/c/Users/kim/.claude/projects is on a Windows drive", "watch poll")
	w.write("proc/version", "Linux version 6.1.0 (debian)\n", 0)
	w.silent(w.examine(), "wsl")
}

func TestClaudeSettings(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/settings.json", `{"env":{"CLAUDE_CODE_SKIP_PROMPT_HISTORY":"0"},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}`, 0)
	r := w.examine()
	w.silent(r, "recording")
	w.silent(r, "hooks")
	for _, on := range []string{`"1"`, `"true"`, `1`, `true`} {
		w.write(".claude/settings.json", `{"env":{"CLAUDE_CODE_SKIP_PROMPT_HISTORY":`+on+`}}`, 0)
		w.wants(w.examine(), "recording", Warn, "set to write no transcripts", "remove it there")
	}
	w.write(".claude/settings.json", `{}`, 0)
	w.write(".claude/settings.local.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"node \"$CLAUDE_PROJECT_DIR\"/.codetracker/hook.js"}]}]}}`, 0)
	w.wants(w.examine(), "hooks", Note, "a codetracker hook", "remove the hook")
	w.write(".claude/settings.local.json", `{"hooks"`, 0)
	w.wants(w.examine(), "recording", Note, "not valid JSON", "fix that file")
	w.write(".claude/settings.local.json", `{}`, 0)
	w.opts.Env = config.Env(func(name string) (string, bool) {
		if name == noTranscripts {
			return "1", true
		}
		return w.env(name)
	})
	w.wants(w.examine(), "recording", Warn, "started from this shell", "`unset ")
}
