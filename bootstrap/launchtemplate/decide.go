package launchtemplate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// ownDescription marks the versions that the agent made: no other is ever deleted.
const ownDescription = "autoscaler-agent: join values"

// version is one version of the template.
type version struct {
	number   int64
	own      bool
	standard bool // the template's default version
	started  bool // a machine that its group still has was started from it
	userData []byte
}

// reference is how a group names the template's version.
type reference struct{ group, version string }

// todo is what brings the template to where it should be.
type todo struct {
	// source is the version that a new one is made from with userData; zero: none is made.
	source   int64
	userData []byte
	// upgrade is what became of the version of Kubernetes that it installs.
	upgrade upgrade.Outcome
	// remove are versions that nothing needs.
	remove []int64
	// strays are groups that launch another version than $Latest.
	strays []string
}

// decide compares the newest version, which groups launch as $Latest, with the join values and the version of Kubernetes
// that the workers follow. Of
// the agent's own versions keep stay, the newest; of the others only those go that are not
// the default, that no group names by their number, and that no machine was started from: the
// agent compares a machine with what the version has that it was started from.
func decide(versions []version, references []reference, join userdata.Join, keep int, follow *upgrade.Follower) (todo, error) {
	var out todo
	if len(versions) == 0 {
		return out, errors.New("it has no version")
	}
	versions = slices.Clone(versions)
	slices.SortFunc(versions, func(a, b version) int { return cmp.Compare(b.number, a.number) })
	latest := versions[0]
	wanted, err := withJoin(latest, join, follow)
	if err != nil {
		return out, err
	}
	if out.upgrade = follow.Of(wanted); out.upgrade.Text != nil {
		wanted = out.upgrade.Text
	}
	if limit := userdata.Limit("aws"); len(wanted) > limit {
		return out, fmt.Errorf("user data of %d bytes, and EC2 takes %d", len(wanted), limit)
	}
	kept := 0
	if !bytes.Equal(wanted, latest.userData) {
		out.source, out.userData, kept = latest.number, wanted, 1
	}
	named := map[string]bool{}
	for _, r := range references {
		named[r.version] = true
		if r.version != "$Latest" {
			out.strays = append(out.strays, fmt.Sprintf("%s (%s)", r.group, cmp.Or(r.version, "$Default")))
		}
	}
	slices.Sort(out.strays)
	for _, v := range versions {
		switch {
		case !v.own:
		case kept < keep:
			kept++
		case !v.standard && !v.started && !named[fmt.Sprint(v.number)]:
			out.remove = append(out.remove, v.number)
		}
	}
	return out, nil
}

// withJoin is the user data of a version with join values. Machines that attest have none in it: their user data is
// published for the version of Kubernetes alone.
func withJoin(latest version, join userdata.Join, follow *upgrade.Follower) ([]byte, error) {
	if follows, _ := follow.Follows(); follows {
		held, err := userdata.Read(latest.userData)
		if err == nil && held.Join.Attest != "" {
			return latest.userData, nil
		}
		if err == nil && join.Token == "" {
			return nil, fmt.Errorf("its version %d wants a join token, and AUTOSCALER_BOOTSTRAP_TOKENS=none makes none: use standing, or user data whose machines attest", latest.number)
		}
	}
	wanted, err := userdata.WithJoin(latest.userData, join)
	if err == nil {
		return wanted, nil
	}
	why := err.Error()
	if !utf8.Valid(latest.userData) {
		why = "it is compressed as a whole"
	}
	return nil, fmt.Errorf("its version %d has no user data to put join values into: %s", latest.number, why)
}

func isOwn(description string) bool { return strings.HasPrefix(description, ownDescription) }
