package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/joinfile"
)

// Back is what rollout back prints for programs. The names of its fields are promises.
type Back struct {
	Group   cluster.GroupID `json:"group"`
	Origin  cluster.Origin  `json:"origin"`
	Changed bool            `json:"changed"`
	Command string          `json:"command"` // does the same with other credentials
	Text    string          `json:"text"`
}

func backCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{
		Use:   "back GROUP",
		Short: "Let a group start its machines from what the former ones were started from",
		Long: `Let a group start its next machines from what most of its machines that are not of the
present source were started from: on AWS the group gets that version of its launch
template, in a mixed instances policy too. A halt ends with that, and machines of the
bad source are replaced as drifted ones. Where no former machine is left, the last
one counts for an hour.

Least privilege: the policy that iam-policy leader prints does not allow it. Then
nothing is changed, and the command that does it with your own credentials is printed.
Where the cloud has no name for what machines were started from (OpenStack), it tells
what to write into groups.yaml.`,
		Example: `  autoscaler-agent rollout back workers
  autoscaler-agent rollout back workers --dry-run`,
	}
	x := newCall(sh, c, "group", "")
	dry := c.Flags().Bool("dry-run", false, "print the command, and change nothing")
	c.Args = x.one
	c.RunE = func(c *cobra.Command, args []string) error {
		g, err := x.subject(c, args)
		if err != nil {
			return err
		}
		to, from, err := former(&g)
		if err != nil {
			return x.Failed("rollout back", err)
		}
		cfg, err := config.LoadWith(*x.envFile)
		if err != nil {
			return x.Failed("configuration", err)
		}
		done := Back{Group: g.Group, Origin: to}
		started, err := oneshot.StartFrom(c.Context(), cfg, g.Group, to, *dry)
		if err != nil {
			return x.Failed("rollout back", err)
		}
		done.Command, done.Changed = started.Command, started.Changed && !*dry
		done.Text = back(&done, from, *dry, started.Refused != nil)
		printed, wrong := x.Print(c.OutOrStdout(), *x.output, done)
		if !printed {
			fmt.Fprintln(c.OutOrStdout(), done.Text)
		}
		if started.Refused != nil {
			return x.Failed("rollout back", started.Refused)
		}
		return wrong
	}
	return c
}

// former is what a group started before, in the cloud's words, and from where that is known.
func former(g *decision.Rollout) (to cluster.Origin, from string, err error) {
	if g.Source == "" {
		return to, "", fmt.Errorf("the provider of group %s does not tell what its machines are started from", g.Group)
	}
	for i := range g.Sources { // those with most machines first
		s := &g.Sources[i]
		switch {
		case s.Present || s.Source == "":
		case s.Origin != (cluster.Origin{}):
			return s.Origin, fmt.Sprintf("%d of its machines were started from that", s.Machines), nil
		default:
			var list []string
			for _, d := range s.Differences {
				words := fmt.Sprintf("%s: %s (now %s)", d.Property, d.Is, d.Wanted)
				if d.Property == cluster.PropertyUserData {
					words += ", which `autoscaler-agent userdata render --from FILE --join-file " + joinfile.Default + "` makes of /var/lib/cloud/instance/user-data.txt of such a machine"
				}
				list = append(list, words)
			}
			return to, "", fmt.Errorf("the cloud has no name for what group %s started before: write into its section of groups.yaml, or into what describes it, as it was: %s",
				g.Group, cmp.Or(strings.Join(list, "; "), "what is not told of machines"))
		}
	}
	if g.Former == (cluster.Origin{}) {
		return to, "", errors.New("no machine of group " + string(g.Group) + " is of another source than the present one: there is no way back that the agent knows")
	}
	return g.Former, "its last machines of another source were started from that", nil
}

func back(b *Back, from string, dry, refused bool) string {
	what := fmt.Sprintf("group %s starts machines from version %s of launch template %s", b.Group, b.Origin.Version, b.Origin.Template)
	switch {
	case refused:
		return fmt.Sprintf("nothing is changed: the agent may not. With credentials that may, this does it (%s):\n%s", from, b.Command)
	case dry:
		return fmt.Sprintf("nothing is changed. This does it (%s):\n%s", from, b.Command)
	case !b.Changed:
		return what + " (it was so before)"
	}
	return fmt.Sprintf("%s (%s)", what, from)
}
