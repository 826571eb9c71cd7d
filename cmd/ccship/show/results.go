package show

import (
	"fmt"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
)

// Excludes lists what is excluded, and why.
func Excludes(e control.Excludes) string {
	e = plain(e)
	var b strings.Builder
	for _, x := range e.Patterns {
		fmt.Fprintf(&b, "%s  %s\n", term.Pad(x.Pattern, 40),
			amount.Counted(int64(x.Transcripts), "transcript", "transcripts"))
	}
	for _, x := range e.Others {
		fmt.Fprintf(&b, "%s  %s\n", term.Pad(term.OneLine(x.Why), 40),
			amount.Counted(int64(x.Transcripts), "transcript", "transcripts"))
	}
	if b.Len() == 0 {
		return "nothing is excluded\n"
	}
	return b.String()
}

// Forgotten returns the result of `ccship forget`.
func Forgotten(r control.ForgetResult) string {
	r = plain(r)
	var b strings.Builder
	fmt.Fprintf(&b, "forgotten: %s, %s removed from the server", term.Printable(r.Session),
		amount.Counted(r.Lines, "line", "lines"))
	if r.Waiting > 0 {
		fmt.Fprintf(&b, ", %s that waited", amount.Counted(r.Waiting, "entry", "entries"))
	}
	if r.Dead > 0 {
		fmt.Fprintf(&b, ", %s", amount.Counted(r.Dead, "dead letter", "dead letters"))
	}
	b.WriteString("\n")
	for _, url := range r.Pending {
		fmt.Fprintf(&b, "could not be reached yet, ccship keeps retrying: %s\n", url)
	}
	for _, url := range r.Kept {
		fmt.Fprintf(&b, "keeps what it has: %s\n", url)
	}
	if r.Detail != "" {
		fmt.Fprintf(&b, "  %s\n", term.Printable(r.Detail))
	}
	for _, path := range r.OnDisk {
		fmt.Fprintf(&b, "stays on disk, and is not sent: %s\n", path)
	}
	return b.String()
}

// Restored lists the files that were restored, and how to resume; elsewhere says that --to named the file.
func Restored(r library.Restored, elsewhere bool) string {
	r = plain(r)
	var b strings.Builder
	for _, f := range r.Files {
		done := "restored"
		if f.Same {
			done = "already there:"
		}
		fmt.Fprintf(&b, "%s %s (%s)\n", done, f.Path, amount.Size(f.Bytes))
		if f.Missing > 0 {
			fmt.Fprintf(&b, "  %s not stored, left blank\n", amount.Counted(f.Missing, "line is", "lines are"))
		}
		if f.Masked > 0 {
			fmt.Fprintf(&b, "  %s masked: tokens are in their place\n", amount.Counted(f.Masked, "secret is", "secrets are"))
		}
		if f.Aside != "" {
			fmt.Fprintf(&b, "  the file of before: %s\n", f.Aside)
		}
	}
	if elsewhere {
		return b.String()
	}
	if r.Cwd != "" && !r.CwdThere {
		fmt.Fprintf(&b, "its folder is not on this machine: %s\n", term.Printable(r.Cwd))
	}
	if r.Cwd != "" {
		fmt.Fprintf(&b, "cd %s && ", term.Quote(r.Cwd))
	}
	return b.String() + "claude --resume " + term.Quote(r.Session) + "\n"
}

// LeftOut lists what was not delivered, and why.
func LeftOut(r control.SyncResult) string {
	r = plain(r)
	var b strings.Builder
	for _, left := range []struct {
		n    int64
		text string
	}{{r.Dead, "refused by the server"}, {r.Excluded, "excluded"}, {r.Withheld, "withheld"}} {
		if left.n > 0 {
			fmt.Fprintf(&b, "  except %s %s\n", amount.Counted(left.n, "line", "lines"), left.text)
		}
	}
	return b.String()
}

// RetiredServers lists what still waits for servers that are no longer configured.
func RetiredServers(list []control.RetiredServer) string {
	list = plain(list)
	text := ""
	for _, f := range list {
		text += fmt.Sprintf("  queued for a retired server: %s for %s; `ccship outbox drop --server %s --yes` "+
			"discards them\n",
			amount.Counted(f.Entries, "line", "lines"), f.URL, f.URL)
	}
	return text
}
