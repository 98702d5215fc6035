// Package upgrade decides which version of Kubernetes new workers install, and renders user data for it.
//
// It refuses to make user data for a version that a leader does not run yet, for one that is newer than the API
// server's or of which no checksum is known, to take a version back, to guess the settings of user data
// that does not tell them, and to do any I/O.
package upgrade

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// What the workers follow of the API server's version.
const (
	Off   = "off"
	Minor = "minor" // another minor version
	Patch = "patch" // every release
)

// Modes are the values of the setting.
var Modes = []string{Off, Minor, Patch}

// Leader is a machine of the control plane with the version of its kubelet.
type Leader struct{ Name, Kubelet string }

// Cluster is what decides about the workers' version.
type Cluster struct {
	Mode    string
	Server  string // the API server's version; empty: not known yet
	Leaders []Leader
}

// follows tells that the workers follow the API server's version.
func (c Cluster) follows() bool { return c.Mode == Minor || c.Mode == Patch }

// Outcome is what is to be done with user data.
type Outcome struct {
	// Text is the user data for the version To; nil: it stays as it is.
	Text     []byte
	From, To string
	// Wanted are the versions that machines may have without being replaced, with "|" between them: with Minor, To and those
	// before it of the same minor.
	Wanted string
	// Why tells what keeps user data as it is that should follow, or that makes machines which may not join; empty: nothing.
	Why, Remedy string
}

// Of decides about user data.
func (c Cluster) Of(text []byte) Outcome {
	server, known := numbers(c.Server)
	if !known && c.Server != "" && c.follows() {
		return Outcome{Why: "the API server's version " + c.Server + " is no release of Kubernetes: the workers do not follow it", Remedy: byHand}
	}
	if !known {
		return Outcome{}
	}
	held, err := userdata.Read(text)
	if err != nil && !c.follows() {
		return Outcome{}
	}
	if err != nil {
		return Outcome{Why: "its user data is not the agent's own: whether it installs " + c.Server + " is not known", Remedy: byHand}
	}
	out := Outcome{From: held.KubernetesVersion}
	has, ok := numbers(held.KubernetesVersion)
	switch behind := cluster.MinorsBehind(held.KubernetesVersion, c.Server); {
	case !ok && !c.follows():
	case !ok:
		out.Why, out.Remedy = "its user data does not say which version of Kubernetes it installs", byHand
	case behind < 0:
		out.Why = fmt.Sprintf("its user data installs %s, which is newer than the API server (%s): Kubernetes allows no newer kubelet", held.KubernetesVersion, c.Server)
		out.Remedy = "upgrade the control plane, or put older user data back"
	case behind == 0 && (c.Mode != Patch || slices.Compare(has, server) >= 0):
	case !c.follows() && behind <= cluster.KubeletSkew:
	case !c.follows():
		out.Why = fmt.Sprintf("its user data installs %s, which is %d minors older than the API server (%s): Kubernetes allows %d", held.KubernetesVersion, behind, c.Server, cluster.KubeletSkew)
		out.Remedy = "set AUTOSCALER_BOOTSTRAP_UPGRADE=minor, or do it by hand: docs/upgrade.md"
	default:
		c.render(text, &out, server)
	}
	return out
}

const byHand = "render it with autoscaler-agent userdata render: docs/upgrade.md"

// render makes the user data for the newest version that is known up to the API server's.
func (c Cluster) render(text []byte, out *Outcome, server []int) {
	hold := func(why, remedy string) { out.Why, out.Remedy = why, remedy }
	if l := c.behind(server); l != nil {
		hold(fmt.Sprintf("the workers follow the API server (%s) when every leader has its version, and the kubelet of %s has %s", c.Server, l.Name, cmp.Or(l.Kubelet, "none")),
			"upgrade the kubelet of "+l.Name+", or delete its Node where the machine is gone: docs/upgrade.md")
		return
	}
	s, err := userdata.SpecOf(text)
	switch {
	case errors.Is(err, userdata.ErrNoSettings):
		hold("its user data does not tell what it was rendered with: an older release of the agent made it", "render it once more with the flags that made it: docs/upgrade.md")
		return
	case err != nil:
		hold(strings.TrimPrefix(err.Error(), "userdata: "), byHand)
		return
	}
	minor, _ := cluster.MinorOf(c.Server)
	if minor > userdata.NewestMinor {
		hold(fmt.Sprintf("this agent makes user data up to Kubernetes 1.%d, and the API server has %s", userdata.NewestMinor, c.Server), "install a newer release of the agent")
		return
	}
	to := s.NewestUpTo(minor, fmt.Sprintf("v%d.%d.%d", server[0], server[1], server[2]))
	if to == "" || newerOrSame(out.From, to) {
		hold(fmt.Sprintf("this agent knows the checksums of no version between %s, which the user data installs, and the API server's %s", out.From, c.Server),
			"install a newer release of the agent, or render the user data with --checksum or --versions")
		return
	}
	s = s.For(to)
	s.APIServerVersion = c.Server
	made, err := userdata.Render(s)
	if err != nil {
		hold("its user data cannot be rendered for "+to+": "+strings.ReplaceAll(strings.TrimPrefix(err.Error(), "userdata: "), "\n", "; "), byHand)
		return
	}
	out.Text, out.To, out.Wanted = made, to, c.alike(to)
}

func (c Cluster) alike(version string) string {
	n, _ := numbers(version)
	var out []string
	for patch := range n[2] + 1 {
		if c.Mode == Minor || patch == n[2] {
			out = append(out, fmt.Sprintf("v%d.%d.%d", n[0], n[1], patch))
		}
	}
	return strings.Join(out, "|")
}

func newerOrSame(a, b string) bool {
	x, _ := numbers(a)
	y, _ := numbers(b)
	return slices.Compare(x, y) >= 0
}

// behind is the first leader whose kubelet is older than the API server. kubeadm upgrades the kubelet of a leader
// after its API server, so that none of several API servers is older than the oldest of these kubelets.
func (c Cluster) behind(server []int) *Leader {
	leaders := slices.Clone(c.Leaders)
	slices.SortFunc(leaders, func(a, b Leader) int { return strings.Compare(a.Name, b.Name) })
	for i := range leaders {
		has, ok := numbers(leaders[i].Kubelet)
		if !ok || slices.Compare(has[:2], server[:2]) < 0 || c.Mode == Patch && slices.Compare(has, server) < 0 {
			return &leaders[i]
		}
	}
	return nil
}

// numbers are the three of a release, "v1.36.3" or "v1.33.4+rke2r1". Releases that are not final are none: no table has
// their checksums.
func numbers(version string) ([]int, bool) {
	version, _, _ = strings.Cut(version, "+")
	var out [3]int
	if n, err := fmt.Sscanf(version, "v%d.%d.%d", &out[0], &out[1], &out[2]); n != 3 || err != nil || fmt.Sprintf("v%d.%d.%d", out[0], out[1], out[2]) != version {
		return nil, false
	}
	return out[:], true
}
