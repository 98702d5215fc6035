package round

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// ledger is a cluster with a group of two machines that have joined as n-1 and n-2 a day ago.
type ledger struct {
	s cluster.Snapshot
	m decision.Memory
	p decision.Policy
}

func newLedger() *ledger {
	l := &ledger{p: decision.Policy{FreshFor: time.Minute, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute, BackoffInitial: 5 * time.Minute, BackoffMax: 30 * time.Minute,
		BackoffReset: 3 * time.Hour, DelayAfterFailure: 3 * time.Minute, OKTotalUnready: 1, MaxTotalUnreadyPercent: 45}}
	l.s.Now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	l.s.Groups = []cluster.NodeGroup{{ID: "w", Max: 10, ReadAt: l.s.Now}}
	l.joined("1", 24*time.Hour)
	l.joined("2", 24*time.Hour)
	return l
}

func (l *ledger) g() *cluster.NodeGroup { return &l.s.Groups[0] }

func (l *ledger) ago(d time.Duration) time.Time { return l.s.Now.Add(-d) }

// machine adds an instance that is counted in the target.
func (l *ledger) machine(name string, age time.Duration) *cluster.Instance {
	g := l.g()
	g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID("i-" + name), Member: true, Phase: cluster.PhaseRunning, Created: l.ago(age)})
	g.Target++
	return &g.Instances[len(g.Instances)-1]
}

// seen says for how long one has been seen without a Node.
func (l *ledger) seen(name string, since time.Duration) {
	Set(&l.m.Unregistered, cluster.InstanceID("i-"+name), l.ago(since))
}

// joined adds one with its Node.
func (l *ledger) joined(name string, age time.Duration) *cluster.Node {
	l.machine(name, age)
	n := &cluster.Node{Name: cluster.NodeName("n-" + name), ProviderID: "i-" + name, Ready: cluster.StatusTrue, Created: l.ago(age)}
	l.s.Nodes = append(l.s.Nodes, n)
	return n
}

// outcome says what became of an action of the last plan.
func (l *ledger) outcome(action, kind string, ago time.Duration) *cluster.Outcome {
	o := cluster.Outcome{Action: action, Group: "w", Kind: kind, At: l.ago(ago), Instance: "i-1", To: 4}
	if kind != "" {
		o.Error = "no"
	}
	l.s.Outcomes = append(l.s.Outcomes, o)
	return &l.s.Outcomes[len(l.s.Outcomes)-1]
}

// resized remembers that a target of 4 was asked for.
func (l *ledger) resized(ago time.Duration, seen time.Time) {
	l.m.Resized = map[cluster.GroupID]decision.Resized{"w": {To: 4, At: l.ago(ago), Seen: seen}}
}

// backedOff remembers a pause of the group.
// again is a group that was backed off for lack of capacity, and a growth that has just failed for the same cause.
func again(last, until, step time.Duration) func(*ledger) {
	return func(l *ledger) {
		l.backedOff(cluster.CauseCapacity, last, until, step)
		l.outcome("grow", "exhausted", time.Second)
	}
}

func (l *ledger) backedOff(cause cluster.Cause, last, until time.Duration, step time.Duration) {
	l.m.Backoff = append(l.m.Backoff, decision.Backoff{Group: "w", Cause: cause, Last: l.ago(last), Until: l.s.Now.Add(until), Step: step})
}

// count plays the steps of a round that count what there is.
func (l *ledger) count() *State {
	w := New(new(Cache), &l.s, &l.m, &l.p)
	w.Remember()
	w.LearnOutcomes()
	w.Index()
	w.Account()
	w.Health()
	w.Finish()
	return w
}

// told is what the round counts of the group, and what it remembers; times are from now.
func (w *State) told() string {
	g := &w.Groups[w.ByID["w"]]
	out := fmt.Sprintf("%d of %d", g.Members, g.CorrectedTarget)
	add := func(format string, args ...any) { out += fmt.Sprintf(", "+format, args...) }
	if g.Size != g.CorrectedTarget {
		add("size %d", g.Size)
	}
	if g.Upcoming > 0 {
		add("%d coming", g.Upcoming)
	}
	if g.Nodes != g.Members {
		add("%d nodes", g.Nodes)
	}
	if g.Unready > 0 {
		add("%d unready", g.Unready)
	}
	if g.replaced > 0 {
		add("%d replaced", g.replaced)
	}
	for _, r := range g.Reapable {
		add("reap %s [%s]", r.Instance.ID, r.Rule)
	}
	for _, b := range w.Next.Backoff {
		add("%s of %s at %s until %s step %s", b.Cause, b.Group, b.Last.Sub(w.Now), b.Until.Sub(w.Now), b.Step)
	}
	for _, id := range slices.Sorted(maps.Keys(w.Next.Resized)) {
		r := w.Next.Resized[id]
		if add("%s resized to %d", id, r.To); !r.Seen.IsZero() {
			out += fmt.Sprintf(" seen %s", r.Seen.Sub(w.Now))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.Next.Deleted)) {
		add("deleted %s", id)
	}
	for _, id := range slices.Sorted(maps.Keys(w.Next.Unregistered)) {
		add("%s since %s", id, w.Next.Unregistered[id].Sub(w.Now))
	}
	for _, id := range slices.Sorted(maps.Keys(w.Next.Unready)) {
		add("%s not Ready since %s", id, w.Next.Unready[id].Sub(w.Now))
	}
	if at, is := w.Next.Short["w"]; is {
		add("short since %s", at.Sub(w.Now))
	}
	if !w.Next.ScaleDownAfter.IsZero() {
		add("no scale-down until %s", w.Next.ScaleDownAfter.Sub(w.Now))
	}
	if w.Plan.Held != nil && len(w.Plan.Held) == 0 {
		add("a list of no reasons")
	}
	for _, h := range w.Plan.Held {
		add("[%s] %s %s", h.Rule, h.Kind, h.Why)
	}
	if !w.Plan.Wake.IsZero() {
		add("wake in %s", w.Plan.Wake.Sub(w.Now))
	}
	if w.Uncacheable {
		add("not cacheable")
	}
	return out
}

// TestAccount: what is counted of a group's target, instances and Nodes.
func TestAccount(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ledger)
		want   string
	}{
		"two of two":    {func(*ledger) {}, "2 of 2"},
		"one is coming": {func(l *ledger) { l.machine("3", time.Minute); l.seen("3", time.Minute) }, "3 of 3, 1 coming, 2 nodes, i-3 since -1m0s, wake in 14m0s"},
		"for as long as its group says": {func(l *ledger) {
			l.machine("3", 16*time.Minute)
			l.seen("3", 16*time.Minute)
			l.g().Options.MaxNodeProvisionTime = new(20 * time.Minute)
		}, "3 of 3, 1 coming, 2 nodes, i-3 since -16m0s, wake in 4m0s"},
		"it is late":                 {func(l *ledger) { l.machine("3", 15*time.Minute); l.seen("3", 15*time.Minute) }, "3 of 3, 2 nodes, reap i-3 [I1], no-join of w at 0s until 5m0s step 5m0s, i-3 since -15m0s"},
		"it was seen a minute late":  {func(l *ledger) { l.machine("3", 16*time.Minute); l.seen("3", 15*time.Minute) }, "3 of 3, 2 nodes, reap i-3 [I1], no-join of w at 0s until 5m0s step 5m0s, i-3 since -15m0s"},
		"its Node went":              {func(l *ledger) { l.machine("3", 2*time.Hour) }, "3 of 3, 2 nodes, i-3 since 0s, [I8] instance i-3 has had no Node since 2026-01-05T08:00:00Z: its Node was deleted, or nobody looked before; a restart of its kubelet registers it again; its machine ends after 2026-01-05T08:15:00Z, wake in 15m0s"},
		"its Node went, or it boots": {func(l *ledger) { l.machine("3", 5*time.Minute) }, "3 of 3, 1 coming, 2 nodes, i-3 since 0s, [I8] instance i-3 has had no Node since 2026-01-05T08:00:00Z: its Node was deleted, or nobody looked before; a restart of its kubelet registers it again; its machine ends after 2026-01-05T08:15:00Z, wake in 10m0s"},
		"its Node went long ago":     {func(l *ledger) { l.machine("3", 2*time.Hour); l.seen("3", 15*time.Minute) }, "3 of 3, 2 nodes, reap i-3 [I8], i-3 since -15m0s"},
		"since when is not known":    {func(l *ledger) { l.machine("3", 0).Created = time.Time{} }, "3 of 3, 1 coming, 2 nodes, i-3 since 0s, wake in 15m0s"},
		"since when is remembered": {func(l *ledger) {
			l.machine("3", 0).Created = time.Time{}
			l.seen("3", time.Minute)
		}, "3 of 3, 1 coming, 2 nodes, i-3 since -1m0s, wake in 14m0s"},
		"it failed": {func(l *ledger) { l.machine("3", time.Minute).Phase = cluster.PhaseFailed }, "3 of 3, 2 nodes, reap i-3 [I2], other of w at -1m0s until 4m0s step 5m0s"},
		"it failed for a cause": {func(l *ledger) {
			in := l.machine("3", time.Minute)
			in.Phase = cluster.PhaseFailed
			in.Failure = &cluster.Failure{Cause: cluster.CauseCapacity, Text: "full", At: l.ago(time.Minute)}
		}, "3 of 3, 2 nodes, reap i-3 [I2], capacity of w at -1m0s until 4m0s step 5m0s"},
		"it failed, nobody knows when": {func(l *ledger) { in := l.machine("3", 0); in.Phase, in.Created = cluster.PhaseFailed, time.Time{} }, "3 of 3, 2 nodes, reap i-3 [I2]"},
		"it failed, and is a Node":     {func(l *ledger) { l.g().Instances[0].Phase = cluster.PhaseFailed }, "2 of 2"},
		"it is no member":              {func(l *ledger) { l.machine("3", time.Minute).Member = false; l.g().Target-- }, "2 of 2"},
		"it is ended":                  {func(l *ledger) { l.machine("3", time.Minute).Phase = cluster.PhaseDeleting; l.g().Target-- }, "2 of 2"},
		"it is gone":                   {func(l *ledger) { l.machine("3", time.Minute).Phase = cluster.PhaseGone; l.g().Target-- }, "2 of 2"},
		"it is stopped":                {func(l *ledger) { l.machine("3", time.Minute).Phase = cluster.PhaseStopped; l.g().Target-- }, "2 of 2"},
		"it was told to go":            {func(l *ledger) { l.m.Deleted = map[cluster.InstanceID]time.Time{"i-1": l.ago(time.Minute)} }, "1 of 1, deleted i-1"},
		"it was told to go long ago":   {func(l *ledger) { l.m.Deleted = map[cluster.InstanceID]time.Time{"i-1": l.ago(15 * time.Minute)} }, "2 of 2"},
		"it was told, and is gone": {func(l *ledger) {
			l.g().Instances[0].Phase = cluster.PhaseGone
			l.m.Deleted = map[cluster.InstanceID]time.Time{"i-1": l.ago(5 * time.Minute)}
		}, "1 of 2, 1 coming, short since 0s, wake in 15m0s"},
		"it was told, and nobody lists it":           {func(l *ledger) { l.m.Deleted = map[cluster.InstanceID]time.Time{"i-9": l.ago(5 * time.Minute)} }, "2 of 2"},
		"it was told, and the next read may list it": {func(l *ledger) { l.m.Deleted = map[cluster.InstanceID]time.Time{"i-9": l.ago(5*time.Minute - 1)} }, "2 of 2, deleted i-9"},
		"it is interrupted":                          {func(l *ledger) { l.g().Instances[0].Interruption = &cluster.Interruption{} }, "2 of 2, 1 replaced"},
		"it is interrupted and no member": {func(l *ledger) {
			l.g().Instances[0].Interruption, l.g().Instances[0].Member = &cluster.Interruption{}, false
			l.g().Target--
		}, "1 of 1"},
		"it is interrupted, and was told to go": {func(l *ledger) {
			l.g().Instances[0].Interruption = &cluster.Interruption{}
			l.m.Deleted = map[cluster.InstanceID]time.Time{"i-1": l.ago(time.Minute)}
		}, "1 of 1, deleted i-1"},
		"more than the target": {func(l *ledger) { l.g().Target = 1 }, "2 of 1, size 2"},

		"two are missing": {func(l *ledger) { l.g().Target = 4 }, "2 of 4, 2 coming, short since 0s, wake in 15m0s"},
		"for some time": {func(l *ledger) {
			l.g().Target = 4
			l.m.Short = map[cluster.GroupID]time.Time{"w": l.ago(14 * time.Minute)}
		}, "2 of 4, 2 coming, short since -14m0s, wake in 1m0s"},
		"for too long": {func(l *ledger) {
			l.g().Target = 4
			l.m.Short = map[cluster.GroupID]time.Time{"w": l.ago(15 * time.Minute)}
		}, "2 of 4, other of w at 0s until 5m0s step 5m0s, short since -15m0s, [I5] group the cloud has not delivered 2 of 4 instances since 2026-01-05T07:45:00Z; look at the group's activities"},
		"for too long, and the pause is over": {func(l *ledger) {
			l.g().Target = 4
			l.m.Short = map[cluster.GroupID]time.Time{"w": l.ago(30 * time.Minute)}
		}, "2 of 4, 2 coming, other of w at -15m0s until -10m0s step 5m0s, short since 0s, [I5] group the cloud has not delivered 2 of 4 instances since 2026-01-05T07:30:00Z; look at the group's activities, wake in 15m0s"},
		"of a group that is paused": {func(l *ledger) { l.g().Target, l.g().Paused = 4, "suspended" }, "2 of 4, short since 0s, wake in 15m0s"},
		"of a group that the cloud refused": {func(l *ledger) {
			l.g().Target = 4
			l.backedOff(cluster.CauseCapacity, time.Minute, time.Minute, time.Minute)
		}, "2 of 4, capacity of w at -1m0s until 1m0s step 1m0s, short since 0s, wake in 15m0s"},
		"of a group whose pause is over": {func(l *ledger) { l.g().Target = 4; l.backedOff(cluster.CauseCapacity, time.Minute, 0, time.Minute) }, "2 of 4, 2 coming, capacity of w at -1m0s until 0s step 1m0s, short since 0s, wake in 15m0s"},
		"of one whose machine did not join": {func(l *ledger) {
			l.g().Target = 4
			l.backedOff(cluster.CauseNoJoin, time.Minute, time.Minute, time.Minute)
		}, "2 of 4, 2 coming, no-join of w at -1m0s until 1m0s step 1m0s, short since 0s, wake in 15m0s"},
		"of another group's pause": {func(l *ledger) {
			l.g().Target = 4
			l.backedOff(cluster.CauseCapacity, time.Minute, time.Minute, time.Minute)
			l.m.Backoff[0].Group = "b"
		}, "2 of 4, 2 coming, capacity of b at -1m0s until 1m0s step 1m0s, short since 0s, wake in 15m0s"},

		"the read is behind":            {func(l *ledger) { l.resized(30*time.Second, time.Time{}) }, "2 of 4, 2 coming, w resized to 4, short since 0s, wake in 30s"},
		"for longer than a read may be": {func(l *ledger) { l.resized(time.Minute, time.Time{}) }, "2 of 2"},
		"the read shows it":             {func(l *ledger) { l.resized(30*time.Second, time.Time{}); l.g().Target = 4 }, "2 of 4, 2 coming, w resized to 4 seen 0s, short since 0s, wake in 30s"},
		"a read of before shows it": {func(l *ledger) {
			l.resized(30*time.Second, time.Time{})
			l.g().Target = 4
			l.g().ReadAt = l.ago(30 * time.Second)
		}, "2 of 4, 2 coming, w resized to 4, short since 0s, wake in 30s"},
		"it showed it, and no longer does": {func(l *ledger) { l.resized(30*time.Second, l.ago(9*time.Second)) }, "2 of 4, 2 coming, w resized to 4 seen -9s, short since 0s, wake in 1s"},
		"it showed it a while ago":         {func(l *ledger) { l.resized(30*time.Second, l.ago(10*time.Second)) }, "2 of 2"},
		"it shows it still":                {func(l *ledger) { l.resized(30*time.Second, l.ago(20*time.Second)); l.g().Target = 4 }, "2 of 4, 2 coming, w resized to 4 seen -20s, short since 0s, wake in 30s"},
		"a cooldown keeps it longer":       {func(l *ledger) { l.resized(9*time.Minute, time.Time{}); l.p.DelayAfterAdd = 10 * time.Minute }, "2 of 2, w resized to 4"},
		"of a group that is gone": {func(l *ledger) {
			l.resized(30*time.Second, time.Time{})
			l.g().ID = "v"
			l.s.Groups = append(l.s.Groups, cluster.NodeGroup{ID: "w", ReadAt: l.s.Now})
			l.m.Resized["x"] = l.m.Resized["w"]
			delete(l.m.Resized, "w")
		}, "0 of 0"},

		"it was grown": {func(l *ledger) { l.outcome("grow", "", time.Second) }, "2 of 4, 2 coming, w resized to 4, short since 0s, wake in 59s"},
		"an older growth is known": {func(l *ledger) {
			l.resized(30*time.Second, l.ago(time.Second))
			l.outcome("grow", "", 30*time.Second).To = 9
		}, "2 of 4, 2 coming, w resized to 4 seen -1s, short since 0s, wake in 9s"},
		"a newer one is": {func(l *ledger) {
			l.resized(30*time.Second, l.ago(time.Second))
			l.outcome("grow", "", time.Second).To = 9
		}, "2 of 9, 7 coming, w resized to 9, short since 0s, wake in 59s"},
		"growth exhausted":                 {func(l *ledger) { l.outcome("grow", "exhausted", time.Second) }, "2 of 2, capacity of w at -1s until 4m59s step 5m0s"},
		"growth denied":                    {func(l *ledger) { l.outcome("grow", "denied", time.Second) }, "2 of 2, refused of w at -1s until 9s step 10s"},
		"growth not found":                 {func(l *ledger) { l.outcome("grow", "not found", time.Second) }, "2 of 2, refused of w at -1s until 9s step 10s"},
		"growth invalid":                   {func(l *ledger) { l.outcome("grow", "invalid", time.Second) }, "2 of 2, invalid of w at -1s until 29m59s step 30m0s"},
		"growth conflict":                  {func(l *ledger) { l.outcome("grow", "conflict", time.Second) }, "2 of 2"},
		"a failure of tomorrow":            {func(l *ledger) { l.outcome("grow", "exhausted", -time.Hour) }, "2 of 2, capacity of w at 0s until 5m0s step 5m0s, not cacheable"},
		"an end":                           {func(l *ledger) { l.outcome("terminate", "", time.Second) }, "1 of 1, deleted i-1"},
		"an end after a growth":            {func(l *ledger) { l.outcome("terminate", "", time.Second); l.outcome("grow", "", 2*time.Second) }, "1 of 3, 2 coming, w resized to 3, deleted i-1, short since 0s, wake in 58s"},
		"an end in the moment of a growth": {func(l *ledger) { l.outcome("terminate", "", time.Second); l.outcome("grow", "", time.Second) }, "1 of 4, 3 coming, w resized to 4, deleted i-1, short since 0s, wake in 59s"},
		"an end that is known": {func(l *ledger) {
			l.m.Deleted = map[cluster.InstanceID]time.Time{"i-1": l.ago(time.Minute)}
			l.outcome("terminate", "", time.Second)
		}, "1 of 1, deleted i-1"},
		"an end of long ago":      {func(l *ledger) { l.outcome("terminate", "", 15*time.Minute+1) }, "2 of 2"},
		"the end fails":           {func(l *ledger) { l.outcome("terminate", "denied", time.Second) }, "2 of 2, no scale-down until 2m59s"},
		"the end has to wait":     {func(l *ledger) { l.outcome("terminate", "busy", time.Second) }, "2 of 2"},
		"the end failed long ago": {func(l *ledger) { l.outcome("terminate", "denied", 3*time.Minute) }, "2 of 2"},
		"scale-down waits longer": {func(l *ledger) {
			l.outcome("terminate", "denied", time.Second)
			l.m.ScaleDownAfter = l.s.Now.Add(time.Hour)
		}, "2 of 2, no scale-down until 1h0m0s"},
		"another action goes well": {func(l *ledger) { l.outcome("cordon", "", time.Second) }, "2 of 2"},
		"another action":           {func(l *ledger) { l.outcome("cordon", "denied", time.Second) }, "2 of 2"},

		"an older failure than the last": {func(l *ledger) {
			l.backedOff(cluster.CauseCapacity, time.Second, 5*time.Minute, 5*time.Minute)
			l.outcome("grow", "exhausted", time.Minute)
		}, "2 of 2, capacity of w at -1s until 5m0s step 5m0s"},
		"a failure beside another group's": {func(l *ledger) {
			l.backedOff(cluster.CauseCapacity, time.Minute, 4*time.Minute, 20*time.Minute)
			l.m.Backoff[0].Group = "b"
			l.outcome("grow", "exhausted", time.Second)
		}, "2 of 2, capacity of b at -1m0s until 4m0s step 20m0s, capacity of w at -1s until 4m59s step 5m0s"},
		"exactly as long after":         {again(3*time.Hour+time.Second, time.Minute, 20*time.Minute), "2 of 2, capacity of w at -1s until 19m59s step 20m0s"},
		"a second failure in the pause": {again(time.Minute, 4*time.Minute, 5*time.Minute), "2 of 2, capacity of w at -1s until 4m59s step 5m0s"},
		"a second failure after it":     {again(10*time.Minute, -5*time.Minute, 5*time.Minute), "2 of 2, capacity of w at -1s until 9m59s step 10m0s"},
		"at the end of it":              {again(10*time.Minute, -time.Second, 5*time.Minute), "2 of 2, capacity of w at -1s until 4m59s step 5m0s"},
		"after the longest":             {again(time.Hour, -30*time.Minute, 30*time.Minute), "2 of 2, capacity of w at -1s until 29m59s step 30m0s"},
		"the same once more":            {again(time.Second, 5*time.Minute, 5*time.Minute), "2 of 2, capacity of w at -1s until 5m0s step 5m0s"},
		"for another cause": {func(l *ledger) {
			l.backedOff(cluster.CauseCapacity, time.Minute, 4*time.Minute, 5*time.Minute)
			l.outcome("grow", "denied", time.Second)
		}, "2 of 2, capacity of w at -1m0s until 4m0s step 5m0s, refused of w at -1s until 9s step 10s"},
		"long after":                     {again(3*time.Hour+time.Minute, time.Minute, 30*time.Minute), "2 of 2, capacity of w at -1s until 4m59s step 5m0s"},
		"nearly as long after":           {again(3*time.Hour+time.Second, -time.Minute, 5*time.Minute), "2 of 2, capacity of w at -1s until 4m59s step 5m0s"},
		"a pause that is longer already": {again(time.Minute, time.Hour, 5*time.Minute), "2 of 2, capacity of w at -1s until 1h0m0s step 5m0s"},
		"a pause is forgotten":           {func(l *ledger) { l.backedOff(cluster.CauseCapacity, 3*time.Hour, 0, 5*time.Minute) }, "2 of 2"},
		"not before its time":            {func(l *ledger) { l.backedOff(cluster.CauseCapacity, 3*time.Hour-time.Second, 0, 5*time.Minute) }, "2 of 2, capacity of w at -2h59m59s until 0s step 5m0s"},
		"nor before its end":             {func(l *ledger) { l.backedOff(cluster.CauseCapacity, 4*time.Hour, time.Second, 5*time.Minute) }, "2 of 2, capacity of w at -4h0m0s until 1s step 5m0s"},
		"failures in the order of their time": {func(l *ledger) {
			l.g().Failures = []cluster.Failure{{Cause: cluster.CauseCapacity, At: l.ago(time.Minute)}, {Cause: cluster.CauseCapacity, At: l.ago(time.Hour)}}
		}, "2 of 2, capacity of w at -1m0s until 9m0s step 10m0s"},

		"one is not Ready": {func(l *ledger) { l.s.Nodes[0].Ready = cluster.StatusFalse }, "2 of 2, 1 unready, n-1 not Ready since 0s"},
		"and was not before": {func(l *ledger) {
			l.s.Nodes[0].Ready = cluster.StatusFalse
			l.m.Unready = map[cluster.NodeName]time.Time{"n-1": l.ago(time.Hour)}
		}, "2 of 2, 1 unready, n-1 not Ready since -1h0m0s"},
		"two are not": {func(l *ledger) { l.s.Nodes[0].Ready, l.s.Nodes[1].Ready = cluster.StatusFalse, cluster.StatusFalse }, "2 of 2, 2 unready, n-1 not Ready since 0s, n-2 not Ready since 0s, [H2] cluster deletions are frozen: 2 of 2 nodes are not Ready"},
		"two are not, and leaders are": {func(l *ledger) {
			l.s.Nodes[0].Ready, l.s.Nodes[1].Ready = cluster.StatusFalse, cluster.StatusFalse
			for i := range 9 {
				l.s.Nodes = append(l.s.Nodes, &cluster.Node{Name: cluster.NodeName(fmt.Sprint("z", i)), Ready: cluster.StatusTrue, ControlPlane: true})
			}
		}, "2 of 2, 2 unready, n-1 not Ready since 0s, n-2 not Ready since 0s, [H2] cluster deletions are frozen: 2 of 2 nodes are not Ready"},
		"two are not, as many as may be": {func(l *ledger) {
			l.p.OKTotalUnready = 2
			l.s.Nodes[0].Ready, l.s.Nodes[1].Ready = cluster.StatusFalse, cluster.StatusFalse
		}, "2 of 2, 2 unready, n-1 not Ready since 0s, n-2 not Ready since 0s"},
		"two are not, as large a share": {func(l *ledger) {
			l.p.MaxTotalUnreadyPercent = 100
			l.s.Nodes[0].Ready, l.s.Nodes[1].Ready = cluster.StatusFalse, cluster.StatusFalse
		}, "2 of 2, 2 unready, n-1 not Ready since 0s, n-2 not Ready since 0s"},
		"two start": {func(l *ledger) {
			for _, n := range l.s.Nodes {
				n.Ready, n.Created = cluster.StatusFalse, l.s.Now
			}
		}, "2 of 2, n-1 not Ready since 0s, n-2 not Ready since 0s"},
		"two of no group are not Ready": {func(l *ledger) {
			for i := range 9 {
				l.s.Nodes = append(l.s.Nodes, &cluster.Node{Name: cluster.NodeName(fmt.Sprint("z", i))})
			}
		}, "2 of 2, z0 not Ready since 0s, z1 not Ready since 0s, z2 not Ready since 0s, z3 not Ready since 0s, z4 not Ready since 0s, z5 not Ready since 0s, z6 not Ready since 0s, z7 not Ready since 0s, z8 not Ready since 0s, [H2] cluster deletions are frozen: 9 of 11 nodes are not Ready"},
		"the facts are old": {func(l *ledger) { l.s.Stale = "no answer" }, "2 of 2, [H1] cluster the cluster's facts may be old: no answer"},
	} {
		l := newLedger()
		c.change(l)
		if got := l.count().told(); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestPaused: an operator's pause has an end and words, or not.
func TestPaused(t *testing.T) {
	l := newLedger()
	for name, c := range map[string]struct {
		pause *cluster.Pause
		want  string
		wake  time.Duration
	}{
		"none":         {nil, "", 0},
		"a pause":      {&cluster.Pause{}, "paused", 0},
		"with words":   {&cluster.Pause{Why: "a freeze"}, "paused: a freeze", 0},
		"for a time":   {&cluster.Pause{Until: l.s.Now.Add(time.Hour), Why: "a freeze"}, "paused until 2026-01-05T09:00:00Z: a freeze", time.Hour},
		"that is over": {&cluster.Pause{Until: l.s.Now, Why: "a freeze"}, "", 0},
	} {
		l := newLedger()
		l.g().Pause = c.pause
		w := l.count()
		w.Plan.Wake = time.Time{}
		if got := w.Paused(&w.Groups[0]); got != c.want || w.Plan.Wake.IsZero() != (c.wake == 0) || c.wake > 0 && w.Plan.Wake != w.Now.Add(c.wake) {
			t.Errorf("%s: %q, wake at %s", name, got, w.Plan.Wake)
		}
	}
}

// TestMerge: pods that are held one by one for one reason are counted, and nothing else is.
func TestMerge(t *testing.T) {
	held := func(kind, rule, why string) decision.Held {
		return decision.Held{Kind: kind, Rule: rule, Why: why, Count: 1}
	}
	for name, c := range map[string]struct {
		a, b decision.Held
		want int
	}{
		"expendable pods":      {held("pod", decision.RuleExpendable, "x"), held("pod", decision.RuleExpendable, "x"), 1},
		"new pods":             {held("pod", decision.RuleNewPod, "x"), held("pod", decision.RuleNewPod, "x"), 1},
		"pods of another rule": {held("pod", decision.RuleNoRoom, "x"), held("pod", decision.RuleNoRoom, "x"), 2},
		"of two rules":         {held("pod", decision.RuleExpendable, "x"), held("pod", decision.RuleNewPod, "x"), 2},
		"for two reasons":      {held("pod", decision.RuleNewPod, "x"), held("pod", decision.RuleNewPod, "y"), 2},
		"nodes":                {held("node", decision.RuleNewPod, "x"), held("node", decision.RuleNewPod, "x"), 2},
	} {
		out := merge([]decision.Held{c.a, c.b})
		count := 0
		for _, h := range out {
			count += h.Count
		}
		if len(out) != c.want || count != 2 {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// TestDriftOfJoined: a machine that has not joined has no kubelet to compare.
func TestDriftOfJoined(t *testing.T) {
	l := newLedger()
	l.machine("3", time.Minute)
	l.s.ControlPlaneVersion, l.g().Template.Source = "v1.33.0", cluster.Spec{"image": "a"}
	for i := range l.g().Instances {
		l.g().Instances[i].Source = cluster.Spec{"image": "a"}
	}
	l.g().Instances[1].Created = l.ago(time.Hour)
	l.s.Nodes[0].KubeletVersion, l.s.Nodes[1].KubeletVersion = "v1.32.0", "v1.33.0"
	w := l.count()
	if got := fmt.Sprint(w.Drift(&w.Groups[0])); got != "map[i-1:[kubelet: v1.32.0, wanted v1.33.0]]" {
		t.Error(got)
	}
}

// TestOptionsAndAccelerators: what a node has of its group, and whether it has accelerators.
func TestOptionsAndAccelerators(t *testing.T) {
	l := newLedger()
	l.g().Options.MaxNodeStartupTime = new(time.Minute)
	l.s.Nodes = append(l.s.Nodes, &cluster.Node{Name: "x"})
	w := l.count()
	if in, out := w.Startup(&w.Nodes[0]), w.Startup(&w.Nodes[2]); in != time.Minute || out != 15*time.Minute {
		t.Errorf("a node may take %s to start, and one of no group %s", in, out)
	}
	for name, amount := range map[string]int64{"nvidia.com/gpu": 0, "example.com/fuse": 1} {
		if HasGPU(&cluster.Node{Allocatable: cluster.Resources{Extended: map[string]int64{name: amount}}}) {
			t.Errorf("%d of %s is an accelerator", amount, name)
		}
	}
	if !HasGPU(&cluster.Node{Allocatable: cluster.Resources{Extended: map[string]int64{"nvidia.com/gpu": 1}}}) {
		t.Error("no accelerator")
	}
}
