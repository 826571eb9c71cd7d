// Command ccship-server is the reference server: it keeps the conversations that ccship ships to it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/postgres"
)

// version is set by the linker.
var version = "dev"

func main() {
	// The first signal ends in good order; after it the default is back, so that a second one ends at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// schemaVersion is of every --json document.
const schemaVersion = 1

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// silent is an error that has been printed already.
type silent struct{ error }

func (e silent) Unwrap() error { return e.error }

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// explain adds what to do to an error of a known kind; any other stays as it is.
func explain(err, known error, hint string) error {
	if errors.Is(err, known) {
		return hinted{err, hint}
	}
	return err
}

// run returns the whole program but its exit.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = term.SafeWriter(stdout, false), term.SafeWriter(stderr, false)
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code, hint := exitFailed, ""
	if _, ok := errors.AsType[usageError](err); ok {
		code = exitUsage
	}
	if h, ok := errors.AsType[hinted](err); ok {
		hint = h.hint
	} else if server.DiskFull(err) {
		hint = "free space on the disk of the database, then run it again"
	}
	if _, printed := errors.AsType[silent](err); printed {
		return code
	}
	if slices.Contains(args, "--json") {
		_ = printJSON(stdout, errorDocument(err, hint, code))
		return code
	}
	term.Printf(stderr, "ccship-server: %v\n", err)
	if hint != "" {
		term.Printf(stderr, "hint: %s\n", hint)
	}
	return code
}

// errorDocument returns an error for programs.
func errorDocument(err error, hint string, code int) any {
	kind := "failed"
	if code == exitUsage {
		kind = "usage"
	}
	type detail struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint"`
	}
	return struct {
		Schema int    `json:"schema_version"`
		Error  detail `json:"error"`
	}{schemaVersion, detail{kind, err.Error(), hint}}
}

// cli is one run of the command line.
type cli struct {
	store string // --store
	json  bool   // --json
}

func newRoot() *cobra.Command {
	p := &cli{}
	root := &cobra.Command{
		Use:           "ccship-server",
		Short:         "Store and show the Claude Code conversations that ccship sends",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          wrapArgs(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if _, has := c.Annotations[jsonMark]; p.json && !has {
				return usage(c, errors.New("it prints no JSON"))
			}
			return nil
		},
	}
	root.SetVersionTemplate("ccship-server {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(c, err)
	})
	root.PersistentFlags().StringVar(&p.store, "store", defaultStore(),
		"where everything is stored: sqlite:PATH or postgres://…; also $CCSHIP_SERVER_STORE")
	root.PersistentFlags().BoolVar(&p.json, "json", false, "print one JSON document")
	completion := term.CompletionCommand(root)
	completion.Hidden = true // packages bring it
	root.AddCommand(p.newServe(), p.newInstall(), p.newUninstall(), p.newStart(), p.newStop(), p.newStatus(),
		p.newUser(), p.newKey(), p.newShare(), p.newLink(), p.newRebuild(), p.newBackup(), p.newRestore(), p.newForget(),
		p.newVerify(), p.newThaw(), p.newRetention(), p.newVacuum(), completion)
	sort(root)
	term.Dress(root)
	return root
}

// sort puts the commands of the help into groups, by who needs them when.
func sort(root *cobra.Command) {
	for _, g := range []struct{ id, title, names string }{
		{"serve", "Everyday commands:", "serve link key user share"},
		{"service", "Service commands:", "install uninstall start stop status"},
		{"store", "Store commands:", "backup restore verify forget retention vacuum thaw rebuild"},
		{"about", "Other commands:", "help"},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range strings.Fields(g.names) {
			if c, _, err := root.Find([]string{name}); err == nil && c != root {
				c.GroupID = g.id
			}
		}
	}
	root.SetHelpCommandGroupID("about")
}

// group returns a command that only holds others.
func group(use, short, say string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  wrapArgs(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return usage(c, errors.New("say "+say)) },
	}
	c.AddCommand(verbs...)
	return c
}

// usage makes err a usage error. Its hint is the command's help.
func usage(c *cobra.Command, err error) error {
	return usageError{hinted{err, fmt.Sprintf("see %s --help", c.CommandPath())}}
}

func wrapArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usage(c, err)
		}
		return nil
	}
}

// jsonMark marks commands that have a document for programs.
const jsonMark = "json"

// printsJSON lets a command print JSON.
func printsJSON(c *cobra.Command) { c.Annotations = map[string]string{jsonMark: ""} }

func printJSON(w io.Writer, v any) error {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	if err == nil {
		_, err = io.WriteString(w, term.EscapeJSON(text.String()))
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

// moment returns a time for programs, null when there is none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// defaultStore returns what the environment says, else below the user's state directory; "" where that is unknown, and
// then
// --store must be given.
func defaultStore() string {
	// An address with a password in it is better kept out of a command line that everybody on a machine can read.
	if url := os.Getenv("CCSHIP_SERVER_STORE"); url != "" {
		return url
	}
	dir := stateDir()
	if dir == "" {
		return ""
	}
	return "sqlite:" + filepath.Join(dir, "server.db")
}

// stateDir returns where the server keeps what nobody named a location for; "" where the user has no home.
func stateDir() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "ccship-server")
}

// openStore opens the store, with hints for what people run into.
func openStore(ctx context.Context, url string, how store.Opening) (store.Store, error) {
	s, err := store.Open(ctx, url, how)
	if err == nil {
		return s, nil
	}
	return nil, explainOpen(err)
}

func explainOpen(err error) error {
	if opening, ok := errors.AsType[*postgres.OpenError](err); ok && opening.Hint != "" {
		return hinted{err, opening.Hint}
	}
	switch {
	case errors.Is(err, store.ErrBadURL):
		return usageError{hinted{err, "try --store sqlite:/var/lib/ccship/server.db"}}
	case errors.Is(err, store.ErrBadBlocks):
		return usageError{hinted{err, "for example --blocks 's3://bucket/ccship?endpoint=https://host'"}}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.EISDIR):
		return hinted{err, "choose a file you may write with --store sqlite:PATH"}
	case errors.Is(err, store.ErrOtherBuild):
		return hinted{err, "name one with --store sqlite:PATH, or move the old file away"}
	case errors.Is(err, store.ErrNewer):
		return hinted{err, "the newest version is at https://github.com/ccship/ccship/releases"}
	}
	return err
}

// withStore opens a store for one piece of work.
func (p *cli) withStore(c *cobra.Command, work func(store.Store) error) (err error) {
	s, err := openStore(c.Context(), p.store, store.Opening{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err = work(s); errors.Is(err, server.ErrCold) {
		return hinted{err, "cold storage needs what the server has: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a " +
			"role; ccship-server serve --blocks says where it is"}
	}
	return err
}

// removeCold removes from cold storage what was forgotten or masked, which the server otherwise does within a minute.
func removeCold(c *cobra.Command, s store.Store) {
	if err := s.Sweep(c.Context()); err != nil {
		term.Printf(c.ErrOrStderr(), "not removed from cold storage yet: %v; the server goes on trying\n", err)
	}
}

// listing returns a command that lists what a store has, as one document or as a table below its head.
func (p *cli) listing(short string,
	list func(*cobra.Command, store.Store) (document any, table [][]any, err error)) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: short, Args: wrapArgs(cobra.NoArgs)}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.withStore(c, func(s store.Store) error {
			document, table, err := list(c, s)
			switch {
			case err != nil:
				return err
			case p.json:
				return printJSON(c.OutOrStdout(), document)
			}
			t := term.NewTable(c.OutOrStdout(), table[0]...)
			for _, row := range table[1:] {
				t.Row(row...)
			}
			return t.Flush()
		})
	}
	printsJSON(c)
	return c
}

// progressEvery is how often a long piece of work says how far it is.
const progressEvery = 2 * time.Second

// progress says now and then how far work is. It is silent about work that is soon done.
type progress struct {
	w    io.Writer
	next time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w, time.Now().Add(progressEvery)} }

func (p *progress) say(format string, args ...any) {
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(progressEvery)
		term.Printf(p.w, format+"\n", args...)
	}
}
