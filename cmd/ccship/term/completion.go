package term

import (
	"fmt"

	"github.com/spf13/cobra"
)

// CompletionCommand prints what makes a shell complete a program's command lines.
func CompletionCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|fish|powershell|zsh",
		Short: "Print what makes a shell complete commands, flags and names",
		Long: "Print the script that makes a shell complete commands, flags and names. In bash it is loaded with " +
			"`source <(" + root.Name() + " completion bash)`.",
		ValidArgs: []string{"bash", "fish", "powershell", "zsh"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(c *cobra.Command, args []string) error {
			out := c.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			case "zsh":
				return root.GenZshCompletion(out)
			}
			return fmt.Errorf("no completion for %s", args[0])
		},
	}
}
