// Package setup has the verbs that bring ccship onto a machine and keep it there: setup, install, uninstall, start,
// stop, restart, logs and plugin. Package service knows the service managers.
package setup

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/internal/service"
)

// verbs makes the commands.
type verbs struct{ *show.App }

// Commands returns the verbs of this package.
func Commands(a *show.App) []*cobra.Command {
	v := verbs{a}
	return []*cobra.Command{
		v.setupCommand(), v.serviceCommand(), v.pluginCommand(),
	}
}

// serviceCommand returns the verbs about the service.
func (a verbs) serviceCommand() *cobra.Command {
	w := &which{}
	cmd := show.Group("service", "Install, start, stop and remove the service, and show its log", "",
		a.installCommand(w), a.startCommand(w), a.stopCommand(w), a.restartCommand(w), a.logsCommand(w),
		a.uninstallCommand(w))
	w.addTo(cmd)
	return cmd
}

// OwnService returns the service of the user who runs this program. The service manager is not asked yet.
func OwnService(a *show.App) (*service.Service, error) {
	t, err := verbs{a}.service(which{})
	if err != nil {
		return nil, err
	}
	return t.Service, nil
}
