package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) checkpointBudget() *cobra.Command {
	var req control.BudgetRequest
	var unset bool
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show or set how many tokens a conversation can hold",
		Long: "Show or set token budgets. Checkpoints are created at 80 % and 90 % of the budget: where Claude " +
			"Code compacts by itself, learned from automatic compactions, before the first one derived from the " +
			"model. Set it if you change Claude Code's own settings (such as CLAUDE_CODE_AUTO_COMPACT_WINDOW or " +
			"DISABLE_AUTO_COMPACT), which no transcript shows. Without --session and --model, list all known " +
			"budgets.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set := cmd.Flags().Changed("set")
			if err := checkBudget(&req, set, unset); err != nil {
				return err
			}
			client, err := a.DaemonClient(cmd.Context())
			if err != nil {
				return err
			}
			var budgets control.Budgets
			if set || unset {
				budgets, err = client.SetBudget(cmd.Context(), req)
			} else {
				budgets, err = client.Budgets(cmd.Context(), req.Session)
			}
			if req.Model != "" && !set && !unset {
				budgets.Budgets = slices.DeleteFunc(budgets.Budgets, func(b control.Budget) bool {
					return b.Session != "" || b.Model != req.Model
				})
			}
			return show.Answer(&a.App, budgets, err, a.View().Budgets)
		},
	}
	cmd.Flags().StringVar(&req.Session, "session", "", "of this `session`")
	cmd.Flags().StringVar(&req.Model, "model", "", "of all sessions with this `model`")
	cmd.Flags().Int64Var(&req.Limit, "set", 0, "how many `tokens` it can hold")
	cmd.Flags().BoolVar(&unset, "unset", false, "forget what was set")
	a.AddJSON(cmd)
	return cmd
}

func checkBudget(req *control.BudgetRequest, set, unset bool) error {
	switch {
	case req.Session != "" && req.Model != "":
		return control.Usage("--session and --model cannot be combined", "leave one of them out")
	case set && unset:
		return control.Usage("--set and --unset cannot be combined", "leave one of them out")
	case (set || unset) && req.Session+req.Model == "":
		return control.Usage("a budget is set for a session or for a model", "name it with --session or --model")
	case set && req.Limit <= 0:
		return control.Usage("--set is a number of tokens", "--unset forgets what was set")
	}
	return nil
}
