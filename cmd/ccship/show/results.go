package show

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/protocol"
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

// ShowImport shows the progress of the import until every line that was on disk is delivered. Each sync may take as
// long as within; if it ends before everything is delivered, again says whether another one starts.
func (a *App) ShowImport(ctx context.Context, client *control.Client, within time.Duration,
	again func(control.SyncResult) bool) (control.SyncResult, error) {
	bar := term.NewBar(a.Stderr, "importing")
	defer bar.Clear()
	showing, hide := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	drawing.Go(func() { drawImport(showing, client, bar) })
	defer drawing.Wait()
	defer hide()
	for {
		result, err := client.Sync(ctx, control.SyncRequest{Wait: true, Timeout: within.String()})
		if err != nil && !Temporary(err) || err == nil && (result.Done || !again(result)) {
			return result, err
		}
		if err := Sleep(ctx, time.Second); err != nil {
			return result, err
		}
	}
}

// SayHowFar says how much of what is on disk is on the server, and what happens with the rest.
func (a *App) SayHowFar(s control.Status, then string) {
	if s.Files == nil || s.Outbox == nil || s.Files.Bytes == 0 {
		return
	}
	there := max(0, s.Files.ReadBytes-s.Outbox.Bytes)
	a.Say("%s of %s (%d %%) are on the server; %s", amount.Size(there), amount.Size(s.Files.Bytes),
		100*there/s.Files.Bytes, then)
}

// drawImport moves the bar by what is read and acknowledged until ctx is done.
func drawImport(ctx context.Context, client *control.Client, bar *term.Bar) {
	for bar != nil && Sleep(ctx, 200*time.Millisecond) == nil {
		status, err := client.Status(ctx)
		if err == nil && status.Files != nil && status.Outbox != nil {
			bar.Set(status.Files.ReadBytes-status.Outbox.Bytes, status.Files.Bytes)
		}
	}
}

// indexPatience is how long a server may take without finishing a single transcript before AwaitIndex stops waiting.
const indexPatience = 15 * time.Second

// index asks a server how many transcripts its lists and its search do not show yet, of all that it stores.
type index func(ctx context.Context) (left, all int64, err error)

// AwaitIndex shows how far the server's index is until lists and search show everything that it has. It returns how
// much of it is shown by then, in per cent: 100, or less when the server is busy with something else. ok is false where
// the server does not say. ask is remote.Indexing.
func (a *App) AwaitIndex(ctx context.Context, ask index) (percent int64, ok bool) {
	bar := term.NewBar(a.Stderr, "indexing")
	defer bar.Clear()
	best, since := int64(-1), time.Now()
	for {
		left, all, err := ask(ctx)
		if err != nil {
			return percent, best >= 0
		}
		if percent = 100 * (all - left) / max(all, 1); left == 0 {
			return 100, true
		}
		bar.Note(fmt.Sprintf("%d%%, %d of %d transcripts left", percent, left, all))
		if best < 0 || left < best {
			best, since = left, time.Now()
		}
		if time.Since(since) > indexPatience || Sleep(ctx, 200*time.Millisecond) != nil {
			return percent, true
		}
	}
}

// ShareLinks lists links to sessions, one a line.
func (v View) ShareLinks(links []protocol.ShareLink) string {
	if len(links) == 0 {
		return "no links\n"
	}
	rows := make([][]string, len(links))
	for i, l := range links {
		rows[i] = []string{strconv.FormatInt(l.ID, 10), "until " + l.Until.In(v.Zone).Format(time.DateTime),
			term.Printable(l.By), l.SessionID[:min(len(l.SessionID), 8)],
			term.Cut(term.Printable(strings.Join(strings.Fields(l.Title), " ")), 100)}
	}
	return v.table("><<<<", rows)
}

// UpDir returns where `ccship up` keeps its own things.
func UpDir(c config.Config) string { return sys.UpDir(c.StateDir) }

// UpSocket returns where the daemon of `ccship up` listens.
func UpSocket(c config.Config) string {
	if c.OriginOf("socket") != config.FromDefault {
		return c.Socket
	}
	return filepath.Join(UpDir(c), "ccship.sock")
}

// Sockets returns the places where a daemon may listen; a socket that was named is the only one.
func Sockets(c config.Config) []string {
	if c.OriginOf("socket") != config.FromDefault {
		return []string{c.Socket}
	}
	return sys.Unnamed(c.Socket, c.StateDir)
}

// DaemonClient returns the client for commands that need a daemon.
func (a *App) DaemonClient(ctx context.Context) (*control.Client, error) {
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	client, _, err := control.Reach(ctx, Sockets(c))
	return client, err
}

// Resend returns the answer to a resend for people.
func Resend(r control.ResendResult) string {
	r = plain(r)
	var b strings.Builder
	inStep := r.Transcripts - len(r.Resent)
	fmt.Fprintf(&b, "%s compared with the server, %d in step\n",
		amount.Counted(int64(r.Transcripts), "transcript", "transcripts"), inStep)
	if len(r.Resent) > 0 {
		b.WriteString("sent again: " + resentText(r) + "; `ccship sync --wait` waits for it\n")
	}
	for _, t := range r.Resent {
		fmt.Fprintf(&b, "  %s  %s from line %d, as generation %d\n", t.SessionID, amount.Counted(t.Lines, "line", "lines"),
			amount.LineNumber(t.From), t.Generation)
	}
	for _, t := range r.Skipped {
		fmt.Fprintf(&b, "  not sent: %s  %s\n", t.SessionID, term.OneLine(t.Why))
	}
	return b.String()
}

func resentText(r control.ResendResult) string {
	return amount.Counted(r.Lines, "line", "lines") + " of " +
		amount.Counted(int64(len(r.Resent)), "transcript", "transcripts")
}

// Resumed says in lines what was brought to this machine.
func Resumed(r library.Resumed) []string {
	r = plain(r)
	var written, bytes int64
	for _, f := range r.Files {
		if !f.Same {
			written++
			bytes += f.Bytes
		}
	}
	out := []string{"session " + r.Session + " of " + cmp.Or(r.Host, r.Machine) + " is complete on this disk already"}
	if written > 0 {
		out = []string{"session " + r.Session + " of " + cmp.Or(r.Host, r.Machine) + ": " +
			amount.Counted(written, "file", "files") + ", " + amount.Size(bytes) + " written"}
	}
	if r.From != "" && r.From != r.Folder {
		out = append(out, r.From+" is "+r.Folder+" here")
	}
	for _, f := range r.Files {
		if f.Aside != "" {
			out = append(out, "the file of before is "+f.Aside)
		}
	}
	if r.Masked > 0 {
		out = append(out, amount.Counted(r.Masked, "secret is", "secrets are")+
			" masked: Claude will see tokens in their place")
	}
	return out
}

// ResumeCommand returns the command line that resumes a session in a folder.
func ResumeCommand(folder, session string) string {
	return "cd " + term.Quote(folder) + " && claude --resume " + term.Quote(session)
}
