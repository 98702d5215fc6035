package bootstrap

import (
	"cmp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Times of tokens on demand.
const (
	// growthTTL is how long a token lives after it was last renewed.
	growthTTL = 15 * time.Minute
	// growthMaxAge is when a long growth gets another token.
	growthMaxAge = time.Hour
	// linger is how long the token stays after the last machine has joined, for one that
	// the inventory does not list yet; it is not renewed meanwhile. It is published for the
	// first half of that, so that who reads it last has time to use it.
	linger = growthTTL / 3
	// settle is how long after a token was made machines may start with the one before it.
	settle = 5 * time.Minute
	// askedFor is how long machines that the cloud was asked for and does not start are
	// waited for. When it starts them after all, a token is made at their sight.
	askedFor = 30 * time.Minute
)

// Coming are the machines that have not joined yet.
type Coming struct {
	Machines int
	// Oldest is the launch of the first of them; zero: none is launched yet, or the cloud
	// tells no launch times.
	Oldest time.Time
}

// Growths counts the machines that come. It remembers since when a group has wanted more
// than it has.
type Growths struct {
	asked map[cluster.GroupID]asked
}

type asked struct {
	machines int
	since    time.Time
}

// Coming returns the machines of all groups that have not joined and may still. A machine
// that takes longer than window, and one that a group waits for in vain, is not counted.
func (g *Growths) Coming(groups []cluster.NodeGroup, joined func(*cluster.Instance) bool, now time.Time, window time.Duration) Coming {
	var out Coming
	next := map[cluster.GroupID]asked{}
	for i := range groups {
		members := 0
		for k := range groups[i].Instances {
			in := &groups[i].Instances[k]
			if !in.Member || in.Phase != cluster.PhasePending && in.Phase != cluster.PhaseRunning {
				continue
			}
			members++
			if joined(in) || now.Sub(in.Created) > window && !in.Created.IsZero() {
				continue
			}
			out.Machines++
			if out.Oldest.IsZero() || !in.Created.IsZero() && in.Created.Before(out.Oldest) {
				out.Oldest = in.Created
			}
		}
		missing := groups[i].Target - members
		if missing <= 0 {
			continue
		}
		a := asked{machines: missing, since: now}
		if old, ok := g.asked[groups[i].ID]; ok && missing <= old.machines {
			a.since = old.since
		}
		next[groups[i].ID] = a
		if now.Sub(a.since) <= askedFor {
			out.Machines += missing
		}
	}
	g.asked = next
	return out
}

// slot is one token of the agent's as a decision needs it.
type slot struct {
	Name       string
	Made, Ends time.Time
	// Dead tells that it cannot be used any more, Standing that an operator asked for it.
	Dead, Standing bool
}

// todo is what is to be done with the tokens.
type todo struct {
	Delete, Renew []string
	Mint          bool
	// Current is the one to publish; empty: none, or the one that is minted.
	Current string
}

// onDemand decides about the tokens while n machines come. lastWanted is when machines came
// at last.
func onDemand(slots []slot, coming Coming, lastWanted, now time.Time) todo {
	var out todo
	var standing, own []slot
	for _, s := range slots {
		switch {
		case s.Dead:
			out.Delete = append(out.Delete, s.Name)
		case s.Standing:
			standing = append(standing, s)
		default:
			own = append(own, s)
		}
	}
	youngest := func(a, b slot) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.Name, b.Name)) }
	slices.SortFunc(standing, youngest)
	slices.SortFunc(own, youngest)
	if coming.Machines == 0 {
		for i, s := range own {
			if idle := now.Sub(lastWanted); i > 0 || idle >= linger {
				out.Delete = append(out.Delete, s.Name)
			} else if idle < linger/2 {
				out.Current = s.Name
			}
		}
		if out.Current == "" && len(standing) > 0 {
			out.Current = standing[0].Name
		}
		return out
	}
	renew := func(s slot) {
		if s.Ends.Sub(now) < growthTTL*2/3 {
			out.Renew = append(out.Renew, s.Name)
		}
	}
	for i, s := range own {
		switch {
		case i == 0 && now.Sub(s.Made) < growthMaxAge:
			out.Current = s.Name
			renew(s)
		case i == 0: // it is superseded now
			renew(s)
		case !coming.Oldest.IsZero() && coming.Oldest.Before(own[i-1].Made.Add(settle)) || now.Sub(own[i-1].Made) < settle:
			renew(s) // machines that started with it have not joined
		default:
			out.Delete = append(out.Delete, s.Name)
		}
	}
	out.Mint = out.Current == ""
	return out
}
