package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/service"
)

func (a *app) upCommand() *cobra.Command {
	var o setup.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Try it now: a server on this machine, the import of everything, and the viewer's address",
		Long: "Start ccship-server on loopback and the daemon in the foreground, import every conversation, and " +
			"run until Ctrl-C. A browser opens with a one-time link; nobody else on this machine sees the pages. " +
			"The next run continues. Everything is in the folder that `ccship config` lists as up.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			return setup.Up(ctx, &a.App, c, o)
		}),
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "", "loopback `address` of the server; it is remembered")
	cmd.Flags().BoolVar(&o.NoBrowser, "no-browser", false, "print the one-time link into the viewer without opening it")
	return cmd
}

func (a *app) openCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "open",
		Short: "Open the viewer in a browser",
		Long: "Print a one-time link into the viewer, and open it in a browser: that of `ccship up`, of the server on this " +
			"machine, or of one elsewhere. It needs no daemon. Where the output is not a terminal, only the link is printed.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			c, err := a.running(ctx)
			if err != nil {
				return err
			}
			if c.ServerURL == "" {
				return library.NoServer()
			}
			return setup.OpenViewer(ctx, &a.App, c)
		}),
	}
}

// mcpProgram is the program behind `ccship mcp`. It is separate so that the daemon does not hold the protocol's code in
// memory all day.
const mcpProgram = "ccship-mcp"

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Run an MCP server on standard input and output, for Claude",
		Long: "Speak the Model Context Protocol on standard input and output, for the Claude Code plugin and other " +
			"clients. Its tools: linked documents, checkpoints, short histories, and search on the server.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			self, err := service.OwnPath()
			if err != nil {
				return err
			}
			program, err := show.FindProgram(mcpProgram)
			if err != nil {
				return err
			}
			args := []string{"-ccship", self}
			for _, path := range show.Sockets(c) {
				args = append(args, "-socket", path)
			}
			return become(program, append(append(args, "--"), a.givenFlags()...))
		},
	}
}

// givenFlags returns the flags of the configuration that were given, to be given again.
func (a *app) givenFlags() []string {
	var given []string
	a.Flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "json" {
			given = append(given, "--"+f.Name+"="+f.Value.String())
		}
	})
	return given
}
