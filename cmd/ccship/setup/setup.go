package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/internal/service"
)

// setup is one run of `ccship setup`.
type setup struct {
	app verbs
	ask *term.Asker // nil: nobody answers

	keyFile              string
	noImport             bool
	noInstall            bool
	assumeYes, evenIfBad bool
	local                bool
	manager              bool // there is one for services
	plain                bool // the server has no viewer
	empty                bool // this machine has no conversations to import
}

func (a verbs) setupCommand() *cobra.Command {
	s := &setup{app: a}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Start a server on this machine or connect to yours, install the service, import everything",
		Long: "Ask for the server's address and key, check both, save them, install the service, and wait until " +
			"every conversation is imported. What flags give is not asked; without a terminal nothing is asked. Run" +
			" it again to change what you give and keep the rest.",
		Example: "  ccship setup\n  ccship setup --local --yes\n" +
			"  ccship setup --server-url https://ccship.example.org --key-file key --yes",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if s.local && cmd.Flags().Changed("server-url") {
				return control.Usage("--local and --server-url cannot be combined", "leave one of them out")
			}
			if !s.assumeYes && s.keyFile != "-" {
				s.ask = term.NewAsker(a.Stderr)
			}
			if err := s.completeURL(ctx); err != nil {
				return err
			}
			return s.run(ctx)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&s.local, "local", false, "use your own server on this machine; install one as a service if there is none")
	f.StringVar(&s.keyFile, "key-file", "", "take the server's key from this `file` (mode 0600); - is standard input")
	f.BoolVar(&s.noImport, "no-import", false, "do not start the service yet")
	f.BoolVar(&s.noInstall, "no-install", false, "do not install the service")
	f.BoolVarP(&s.assumeYes, "yes", "y", false, "ask nothing: what is not given by flags stays as it is")
	f.BoolVar(&s.evenIfBad, "force", false,
		"save server and key even if the server cannot be reached or rejects the API key")
	return cmd
}

func (s *setup) run(ctx context.Context) error {
	t, err := s.app.service(which{})
	if err != nil {
		return err
	}
	st, statusErr := t.Status(ctx)
	s.manager = statusErr == nil && st.Manager != service.None
	s.introduce(t.config)
	chosen, err := s.connect(ctx, &t.config)
	if err != nil {
		return err
	}
	install, err := s.mayInstall(ctx, t, st, statusErr)
	if err != nil {
		return err
	}
	values := []config.Value{{Name: "server_url", Value: chosen.server}}
	if err := config.WriteServer(t.config.Path, t.config.APIKeyFile, chosen.key, values); err != nil {
		return err
	}
	s.app.Say("saved in %s", t.config.Path)
	if !install {
		return s.tellHowToRun(ctx, t)
	}
	if t, err = s.app.service(which{}); err != nil { // as it is configured now
		return err
	}
	return s.bringUp(ctx, t, chosen)
}

// introduce says in one sentence what will happen, to the user at the terminal.
func (s *setup) introduce(c config.Config) {
	if s.ask == nil {
		return
	}
	what := "what Claude Code writes from now on"
	kept, err := config.Expiring(c.Roots, sweepSoon, time.Now())
	if s.empty = err == nil && kept.Sessions == 0; err == nil && !s.empty {
		what = "the " + amount.Counted(int64(kept.Sessions), "session", "sessions") + " (" + amount.Size(kept.Bytes) +
			") of Claude Code on this machine"
	}
	does := "asks for your server and its key, installs a service, and imports " + what
	if s.noInstall || !s.manager {
		does = "asks for your server and its key, and says how to import " + what
	}
	s.app.Say("setup %s; Enter takes what is in brackets, Ctrl-C stops.", does)
}

// mayInstall says whether the service is to be installed, before anything is written. st and err are what the manager
// says of it.
func (s *setup) mayInstall(ctx context.Context, t *theService, st service.Status, err error) (bool, error) {
	if s.noInstall {
		return false, nil
	}
	if err == nil && st.Manager == service.None {
		_, err = t.Install(ctx, false) // says why, and does nothing else
	}
	if err == nil {
		err = t.foreign(ctx, st)
	}
	if err != nil {
		if ctx.Err() == nil {
			if s.manager { // without one, the end of setup says what to do instead
				show.PrintError(s.app.Stderr, show.Describe(err))
			}
			return false, nil
		}
		return false, err
	}
	if s.ask == nil || st.Installed {
		return true, nil
	}
	return s.ask.Yes(ctx, "install the service, which starts automatically from now on?", true)
}

// bringUp installs the service and waits for the import. What stays on this machine is imported without a question.
func (s *setup) bringUp(ctx context.Context, t *theService, chosen chosen) error {
	if s.ask != nil && !s.noImport && !s.empty && !chosen.own {
		now, err := s.ask.Yes(ctx, "import everything now?", true)
		if err != nil {
			return err
		}
		s.noImport = !now
	}
	before, err := t.Status(ctx)
	if err != nil {
		return err
	}
	if s.noImport {
		if _, _, err := s.app.install(ctx, t, false); err != nil {
			return err
		}
		return s.app.Tell("installed; it starts at the next login, or with `ccship service start`\n")
	}
	client, status, err := s.app.install(ctx, t, true)
	if err == nil && before.Running && status.PID == before.PID { // it was there before, and knows the old server
		if err = t.Restart(ctx); err == nil {
			client, status, err = t.answered(ctx)
		}
	}
	if err != nil {
		return err
	}
	s.app.Say("the service runs (pid %d)", status.PID)
	defer s.app.warnLinger(ctx, t)
	if !chosen.usable {
		return s.app.Tell("the import begins when the server accepts it; `ccship status` shows that\n")
	}
	return s.waitForImport(ctx, t, client)
}

// importSlice is the time between two looks at whether a long import still makes progress.
const importSlice = 5 * time.Second

// waitForImport shows the import, and at its end what is on the server.
func (s *setup) waitForImport(ctx context.Context, t *theService, client *control.Client) error {
	var status control.Status
	result, err := s.app.ShowImport(ctx, client, importSlice, func(r control.SyncResult) bool {
		status, _ = client.Status(ctx) // without an answer it is not over
		return goesOn(r, status)
	})
	if errors.Is(err, context.Canceled) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), howFarTime)
		if now, err := client.Status(asking); err == nil {
			s.app.SayHowFar(now, "the service continues")
		}
		cancel()
		s.app.Say("the import goes on without this command; `ccship status --watch` shows it")
	}
	if err != nil {
		return err
	}
	if !result.Done && !arrived(status) {
		s.app.Say("the import goes on by itself as soon as it can; `ccship status` shows it")
		return show.Unfinished(result)
	}
	if _, status, err = t.answered(ctx); err != nil {
		return fmt.Errorf("ask daemon: %w", err)
	}
	if !s.plain {
		awaitIndex(ctx, s.app.App, t.config)
	}
	if err := s.app.Tell(s.saved(t.config, status, result)); err != nil {
		return err
	}
	return s.invite(ctx, t.config)
}

// arrived says whether the user's own server has everything, whatever waits for others: a server that was named by
// mistake before keeps what was meant for it.
func arrived(s control.Status) bool {
	return len(s.Servers) > 0 && s.Servers[0].Batches == 0 && s.Files != nil && s.Files.ReadBytes >= s.Files.Bytes
}

// goesOn says whether an import that has not come to its end yet is worth waiting for.
func goesOn(r control.SyncResult, s control.Status) bool {
	clear := len(s.Servers) > 0 && (s.Servers[0].State == "ok" || s.Servers[0].State == "unknown")
	return !arrived(s) && (r.Reason == "timeout" || clear)
}
