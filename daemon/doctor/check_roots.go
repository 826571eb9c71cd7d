package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// mostNamed is how many findings of a kind are listed one by one; `ccship status` lists all.
const mostNamed = 3

func checkRoots(_ context.Context, x *exam) []Finding {
	if x.o.ConfigErr != nil && x.daemon().client == nil {
		return nil
	}
	var found []Finding
	there := 0
	for _, root := range x.roots() {
		info, err := os.Stat(root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err == nil && !info.IsDir():
			found = append(found, Finding{Level: Fail, Text: root + " is not a folder",
				Fix: "`ccship config roots FOLDER…`"})
		default:
			there++
			if _, listErr := os.ReadDir(root); listErr != nil && x.daemon().client == nil {
				found = append(found, unreadable("cannot list "+listErr.Error()))
			}
		}
	}
	found = append(found, x.unread()...)
	switch {
	case len(found) > 0:
		return found
	case there == 0:
		return []Finding{{Level: Note, Text: "there are no conversations yet: " + strings.Join(x.roots(), ", ") +
			" does not exist", Fix: "if they are elsewhere: `ccship config roots FOLDER…`"}}
	}
	d := x.retention()
	if d.err != nil && x.daemon().client == nil {
		return []Finding{unreadable("cannot list " + d.err.Error())}
	}
	return fine(amount.Counted(int64(d.Sessions), "session", "sessions") + " in " + strings.Join(x.roots(), ", "))
}

// checkElsewhere names the folders with conversations that are not among the roots.
func checkElsewhere(_ context.Context, x *exam) (found []Finding) {
	for _, h := range x.o.Config.Elsewhere(x.roots()) {
		found = append(found, Finding{Level: Note,
			Text: "not delivered: " + amount.Counted(int64(h.Transcripts), "session", "sessions") + " in " + h.Path +
				", which is not among the roots",
			Fix: "`ccship config roots " + strings.Join(x.roots(), " ") + " " + h.Path + "` has them delivered"})
	}
	return found
}

// unread returns the folders and files that the daemon cannot read.
func (x *exam) unread() []Finding {
	var found []Finding
	more := 0
	for _, n := range x.daemon().status.Advice {
		if n.Kind != "unreadable" {
			continue
		}
		if len(found) == mostNamed {
			more++
			continue
		}
		found = append(found, unreadable(n.Text))
	}
	if more > 0 {
		found = append(found, Finding{Level: Fail, Text: amount.Counted(int64(more), "more folder or file",
			"more folders or files") + " cannot be read", Fix: "`ccship status` lists them"})
	}
	return found
}

func unreadable(text string) Finding {
	return Finding{Level: Fail, Text: text, Detail: "its content is not delivered; nothing counts as deleted",
		Fix: "make it readable by this user"}
}

// The inotify limits a user needs: ccship uses at most 4 096 watches, and other programs need some too.
const (
	watchesWanted   = 8192
	instancesWanted = 128
)

func checkWatch(_ context.Context, x *exam) []Finding {
	w := x.daemon().status.Watch
	if w == nil {
		w = &control.Watch{} // no daemon
	}
	level, text := Note, ""
	if starved(w) {
		level, text = Warn, "changes are found by polling, not by events: "+w.Reason
	}
	low := x.lowLimits()
	switch {
	case len(low) > 0:
		f := Finding{Level: level, Text: text, Fix: sysctl(low)}
		if text == "" {
			f.Text = "this system's inotify limits are low: " + strings.Join(low, ", ")
		} else {
			f.Detail = "this system's limits are low: " + strings.Join(low, ", ")
		}
		return []Finding{f}
	case text != "":
		f := Finding{Level: Warn, Text: text, Detail: "lines arrive up to a second later; nothing is lost"}
		if runtime.GOOS == "linux" {
			f.Fix = sysctl([]string{"max_user_watches", "max_user_instances"})
		}
		return []Finding{f}
	case w.Mode == "poll":
		return fine("by polling (" + w.Reason + ")")
	case w.Mode == "events" && w.Watches >= w.Limit && w.Limit > 0:
		return fine("by file events in " + strconv.Itoa(w.Watches) + " folders, the rest by listing")
	case w.Mode == "events":
		return fine("by file events")
	}
	return nil
}

// starved says that the daemon polls because the system gave it no events.
func starved(w *control.Watch) bool {
	return w.Mode == "poll" && strings.Contains(w.Reason, "change events")
}

// lowLimits returns the inotify limits that are lower than they should be.
func (x *exam) lowLimits() (low []string) {
	for _, limit := range []struct {
		name   string
		wanted int
	}{{"max_user_watches", watchesWanted}, {"max_user_instances", instancesWanted}} {
		text, err := os.ReadFile(filepath.Join(x.o.Proc, "sys/fs/inotify", limit.name))
		if n, numErr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && numErr == nil && n < limit.wanted {
			low = append(low, limit.name+" is "+strconv.Itoa(n))
		}
	}
	return low
}

// sysctl returns the command that raises limits of inotify, now and after the next boot.
func sysctl(limits []string) string {
	values := map[string]string{"max_user_watches": "524288", "max_user_instances": "1024"}
	var words []string
	for _, limit := range limits {
		name, _, _ := strings.Cut(limit, " ")
		words = append(words, "fs.inotify."+name+"="+values[name])
	}
	return "`printf '%s\\n' " + strings.Join(words, " ") +
		" | sudo tee /etc/sysctl.d/60-inotify.conf && sudo sysctl --system`"
}

// windowsDrive is where WSL mounts a Windows drive.
var windowsDrive = regexp.MustCompile(`^/mnt/[a-z](/|$)`)

func checkWSL(_ context.Context, x *exam) []Finding {
	kernel, err := os.ReadFile(filepath.Join(x.o.Proc, "version"))
	if err != nil || !strings.Contains(strings.ToLower(string(kernel)), "microsoft") {
		return nil
	}
	var found []Finding
	for _, root := range x.roots() {
		real, err := filepath.EvalSymlinks(root)
		if err != nil {
			real = root
		}
		if windowsDrive.MatchString(real) || windowsDrive.MatchString(root) {
			found = append(found, Finding{Level: Note,
				Text:   root + " is on a Windows drive, which reports no file events to WSL",
				Detail: "new lines are found by polling, seconds later",
				Fix:    "`ccship config watch poll`, or run ccship on Windows"})
		}
	}
	return found
}
