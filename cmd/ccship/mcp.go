package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/internal/service"
)

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
