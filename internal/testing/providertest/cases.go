package providertest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

type testCase struct {
	name string
	run  func(*stage)
}

var cases = []testCase{
	{"ReadIsWhole", readIsWhole},
	{"ReadIsACopy", readIsACopy},
	{"NarrowedRead", narrowedRead},
	{"PartialRead", partialRead},
	{"TemplateCannotBeRead", templateCannotBeRead},
	{"CancelledContext", cancelledContext},
	{"ThrottleIsTransient", throttleIsTransient},
	{"CredentialsExpired", credentialsExpired},
	{"ProviderIDMatchesNode", providerIDMatchesNode},
	{"TemplateFromZero", templateFromZero},
	{"GoneInstanceIsPhaseGone", goneInstanceIsPhaseGone},
	{"GroupVanished", groupVanished},
	{"UnknownGroup", unknownGroup},
	{"ResizeIsSeenAtOnce", resizeIsSeenAtOnce},
	{"ResizeOnOldFactsConflicts", resizeOnOldFactsConflicts},
	{"ResizeNeverDeletes", resizeNeverDeletes},
	{"ResizeToSameIsSuccess", resizeToSameIsSuccess},
	{"BoundsAreHeld", boundsAreHeld},
	{"ConcurrentResizes", concurrentResizes},
	{"QuotaIsExhausted", quotaIsExhausted},
	{"DeleteLowersTheTarget", deleteLowersTheTarget},
	{"DeleteTwiceIsOnce", deleteTwiceIsOnce},
	{"DeleteForeignInstanceIsNotFound", deleteForeignInstanceIsNotFound},
	{"DeletionRefused", deletionRefused},

	{"ProviderIDsInEveryForm", providerIDsInEveryForm},
	{"TemplateWithTaintsAndLabels", templateWithTaintsAndLabels},
	{"TemplateChanges", templateChanges},
	{"NeverJoiningInstance", neverJoiningInstance},
	{"FailedInstance", failedInstance},
	{"PausedGroup", pausedGroup},
	{"NoGroupsAreNotUnknown", noGroupsAreNotUnknown},
	{"CapacityIsExhausted", capacityIsExhausted},
	{"ResizeWhileDeleting", resizeWhileDeleting},
	{"DeleteMoreThanSurplus", deleteMoreThanSurplus},
	{"DeletionRefusedForOne", deletionRefusedForOne},
	{"ConcurrentDeletes", concurrentDeletes},
	{"ConcurrentReads", concurrentReads},
	{"CredentialsExpireMidRun", credentialsExpireMidRun},
	{"ReadLagsBehindWrites", readLagsBehindWrites},
	{"LostAnswer", lostAnswer},
	{"HangingCloud", hangingCloud},

	{"SourceIsTold", sourceIsTold},
	{"SourceAfterAChange", sourceAfterAChange},
	{"SourceThroughRotation", sourceThroughRotation},
	{"SourceTellsUserData", sourceTellsUserData},

	{"InstancesByID", instancesByID},
	{"InstanceOutsideGroupsByID", instanceOutsideGroupsByID},
	{"GoneInstanceByID", goneInstanceByID},
	{"MalformedIDIsUnknown", malformedIDIsUnknown},
	{"TroubleEndsNothing", troubleEndsNothing},
}

func readIsWhole(s *stage) {
	before := time.Now().Add(-24 * time.Hour)
	groups := s.read()
	if len(groups) != 2 {
		s.Errorf("%d groups, want 2", len(groups))
	}
	g := groups[Workers]
	if g.Min != 0 || g.Max != 10 || g.Target != 2 {
		s.Errorf("bounds %d..%d target %d, want 0..10 and 2", g.Min, g.Max, g.Target)
	}
	if g.Stale != "" || g.Paused != "" || len(g.Failures) > 0 {
		s.Errorf("stale %q paused %q failures %v, want none", g.Stale, g.Paused, g.Failures)
	}
	if g.ReadAt.IsZero() {
		s.Errorf("no time of the read")
	}
	var ids []cluster.InstanceID
	for _, i := range g.Instances {
		ids = append(ids, i.ID)
		if i.Phase != cluster.PhaseRunning || !i.Member || i.Created.Before(before) || i.Type == "" {
			s.Errorf("instance %+v, want a running member with type and launch time", i)
		}
	}
	s.wantAlive(Workers, ids)
}

// narrowedRead: what a narrowed read tells of a group is what a whole read tells, before and
// after a change, and it does not change what whole reads tell.
func narrowedRead(s *stage) {
	s.read()
	for _, target := range []int{2, 3} {
		if target != 2 {
			s.ok(s.p.Resize(s.ctx(), Workers, 2, target))
			s.settle()
		}
		list, err := s.p.Groups(provider.WithOnly(s.ctx(), []cluster.GroupID{Workers}))
		s.ok(err)
		at := slices.IndexFunc(list, func(g cluster.NodeGroup) bool { return g.ID == Workers })
		if at < 0 {
			s.Fatalf("a read of %s does not tell of it: %v", Workers, list)
		}
		whole := s.read()
		if len(whole) != 2 {
			s.Errorf("%d groups after a narrowed read, want 2", len(whole))
		}
		got := print(map[cluster.GroupID]cluster.NodeGroup{Workers: list[at]})
		if want := print(map[cluster.GroupID]cluster.NodeGroup{Workers: whole[Workers]}); got != want {
			s.Errorf("a narrowed read tells %s\nand a whole one %s", got, want)
		}
		if list[at].ReadAt.IsZero() || list[at].Target != target {
			s.Errorf("target %d read at %v, want %d", list[at].Target, list[at].ReadAt, target)
		}
	}
}

func readIsACopy(s *stage) {
	first := s.read()
	want := print(s.read())
	for id, g := range first {
		g.Template.Labels["spoilt"] = "yes"
		for i := range g.Template.Taints {
			g.Template.Taints[i].Key = "spoilt"
		}
		for name := range g.Template.Capacity.Extended {
			g.Template.Capacity.Extended[name] = -1
		}
		for i := range g.Instances {
			in := &g.Instances[i]
			for n := range in.NodeNames {
				in.NodeNames[n] = "spoilt"
			}
			for n := range in.Names {
				in.Names[n] = "spoilt"
			}
			for n := range in.Addresses {
				in.Addresses[n] = netip.Addr{}
			}
			in.ID, in.Phase = "spoilt", cluster.PhaseGone
		}
		for i := range g.Warnings {
			g.Warnings[i] = "spoilt"
		}
		first[id] = g
	}
	if got := print(s.read()); got != want {
		s.Errorf("changing a result changed the next one:\n%s\nwant\n%s", got, want)
	}
}

func partialRead(s *stage) {
	s.w.BreakRead(s, true)
	groups, err := s.p.Groups(s.ctx())
	if err == nil {
		s.Errorf("a read that failed in part has no error")
	}
	if groups == nil {
		s.Fatalf("a read that failed in part returned nothing: %v", err)
	}
	if !slices.ContainsFunc(provider.Errors(err), func(e *provider.Error) bool { return e.Group == Workers }) {
		s.Errorf("no *Error names %s: %v", Workers, err)
	}
	byID := s.byID(groups)
	if g, ok := byID[Others]; !ok || g.Stale != "" || len(g.Instances) != 1 {
		s.Errorf("%s could be read, and is %+v", Others, g)
	}
	if g, ok := byID[Workers]; ok && g.Stale+g.TemplateStale+g.FailuresStale == "" {
		s.Errorf("%s was not read whole and is not stale", Workers)
	} else if want := len(s.w.Alive(Workers)); ok && g.Stale == "" && living(g) != want {
		s.Errorf("%s has %d machines of %d and is not stale", Workers, living(g), want)
	}
	s.w.BreakRead(s, false)
	for id, g := range s.read() {
		if why := g.Stale + g.TemplateStale + g.FailuresStale; why != "" {
			s.Errorf("%s is still stale: %s", id, why)
		}
	}
}

// templateCannotBeRead: the machines are told as ever, also one that comes meanwhile, and
// can be ended.
func templateCannotBeRead(s *stage) {
	broken := ability[BreakTemplate](s)
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 3))
	broken.BreakTemplate(s, true)
	s.settle()
	groups, err := s.p.Groups(s.ctx())
	g := s.byID(groups)[Workers]
	alive := s.w.Alive(Workers)
	if g.Stale != "" || g.Target != 3 || living(g) != 3 || len(alive) != 3 {
		s.Errorf("stale %q, target %d, %d machines of %d: want them whole", g.Stale, g.Target, living(g), len(alive))
	}
	if g.TemplateStale == "" || !slices.ContainsFunc(provider.Errors(err), func(e *provider.Error) bool { return e.Group == Workers }) {
		s.Errorf("template stale %q, error %v: want both to say so", g.TemplateStale, err)
	}
	s.ok(s.p.Delete(s.ctx(), Workers, alive[0]))
	broken.BreakTemplate(s, false)
	s.settle()
	if g := s.group(Workers); g.TemplateStale != "" || g.Template.Spec == "" {
		s.Errorf("after that was over: template stale %q, spec %q", g.TemplateStale, g.Template.Spec)
	}
}

func cancelledContext(s *stage) {
	alive := s.w.Alive(Workers)
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	groups, err := s.p.Groups(ctx)
	if groups != nil || !errors.Is(err, context.Canceled) {
		s.Errorf("Groups: %d groups and %v, want nil and the context's error", len(groups), err)
	}
	if err := s.p.Resize(ctx, Workers, 2, 3); !errors.Is(err, context.Canceled) {
		s.Errorf("Resize: %v, want the context's error", err)
	}
	if err := s.p.Delete(ctx, Workers, alive[0]); !errors.Is(err, context.Canceled) {
		s.Errorf("Delete: %v, want the context's error", err)
	}
	s.wantTarget(Workers, 2)
	s.wantAlive(Workers, alive)
}

// allFail plays the three methods while nothing can work, and wants that kind and
// no effect.
func (s *stage) allFail(kind provider.Kind) {
	s.Helper()
	alive := s.w.Alive(Workers)
	groups, err := s.p.Groups(s.ctx())
	if groups != nil {
		s.Errorf("nothing could be read, and %d groups were returned; nil means unknown", len(groups))
	}
	s.wantKind(err, kind)
	s.wantKind(s.p.Resize(s.ctx(), Workers, 2, 3), kind)
	s.wantKind(s.p.Delete(s.ctx(), Workers, alive[0]), kind)
	s.wantTarget(Workers, 2)
	s.wantAlive(Workers, alive)
}

func throttleIsTransient(s *stage) {
	s.w.Throttle(s, true)
	s.allFail(provider.Transient)
	s.w.Throttle(s, false)
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 3))
}

func credentialsExpired(s *stage) {
	s.w.Expire(s, true)
	s.allFail(provider.Denied)
	if _, err := s.p.Groups(s.ctx()); !slices.ContainsFunc(provider.Errors(err), func(e *provider.Error) bool { return e.Remedy != "" }) {
		s.Errorf("no remedy: %v", err)
	}
	s.w.Expire(s, false)
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 3))
}

func providerIDMatchesNode(s *stage) {
	for _, g := range s.read() {
		for _, i := range g.Instances {
			n := s.w.Node(i.ID)
			if n.ProviderID != string(i.ID) {
				s.Errorf("instance %s, and its kubelet writes provider ID %q", i.ID, n.ProviderID)
			}
			if !slices.Contains(i.NodeNames, string(n.Name)) {
				s.Errorf("instance %s may be called %v, and its Node is %s", i.ID, i.NodeNames, n.Name)
			}
			for _, name := range i.NodeNames {
				if !slices.Contains(i.Names, name) || name == "" || name != strings.ToLower(name) {
					s.Errorf("instance %s: node name %q is not among its names %v, or not in lower case", i.ID, name, i.Names)
				}
			}
			for _, a := range n.Addresses {
				if ip, err := netip.ParseAddr(a); err == nil && !slices.Contains(i.Addresses, ip) {
					s.Errorf("instance %s has addresses %v, and its Node reports %s", i.ID, i.Addresses, a)
				}
			}
		}
	}
}

func templateFromZero(s *stage) {
	full := s.group(Workers).Template
	s.ok(s.p.Delete(s.ctx(), Workers, s.w.Alive(Workers)...))
	s.settle()
	g := s.group(Workers)
	if g.Target != 0 || len(s.w.Alive(Workers)) != 0 {
		s.Fatalf("the group is not empty: %+v", g)
	}
	t := g.Template
	if t.Unknown != "" || t.Spec == "" {
		s.Fatalf("an empty group has no template: %q spec %q", t.Unknown, t.Spec)
	}
	if t.Spec != full.Spec {
		s.Errorf("spec %s, and %s while the group had machines", t.Spec, full.Spec)
	}
	a, c := t.Allocatable, t.Capacity
	if a.MilliCPU <= 0 || a.Memory <= 0 || a.Pods <= 0 || a.MilliCPU > c.MilliCPU || a.Memory > c.Memory {
		s.Errorf("allocatable %+v of capacity %+v", a, c)
	}
	for _, name := range []string{"kubernetes.io/os", "kubernetes.io/arch"} {
		if t.Labels[name] == "" {
			s.Errorf("the template lacks label %s: %v", name, t.Labels)
		}
	}
	if _, ok := t.Labels["kubernetes.io/hostname"]; ok {
		s.Errorf("the template claims to know the host name")
	}
}

// goneInstanceIsPhaseGone ends one instance by the provider and one behind its back.
func goneInstanceIsPhaseGone(s *stage) {
	alive := s.w.Alive(Workers)
	s.ok(s.p.Delete(s.ctx(), Workers, alive[0]))
	s.w.Kill(alive[1])
	for _, i := range s.group(Workers).Instances {
		if slices.Contains(alive, i.ID) && i.Phase != cluster.PhaseDeleting && i.Phase != cluster.PhaseGone {
			s.Errorf("an instance that was just ended is in phase %q", i.Phase)
		}
	}
	s.settle()
	now := s.w.Alive(Workers)
	if len(now) != 1 || slices.Contains(alive, now[0]) {
		s.Errorf("alive: %v, want one in place of the one that was not deleted by name", now)
	}
	for _, i := range s.group(Workers).Instances {
		if slices.Contains(alive, i.ID) && (i.Phase != cluster.PhaseGone || i.Member) {
			s.Errorf("an instance that is gone and still listed: phase %q, member %t", i.Phase, i.Member)
		}
		if slices.Contains(now, i.ID) && (i.Phase == cluster.PhaseGone || !i.Member) {
			s.Errorf("%s lives: phase %q, member %t", i.ID, i.Phase, i.Member)
		}
	}
	s.wantTarget(Workers, 1)
}

func groupVanished(s *stage) {
	victim := s.w.Alive(Workers)[0]
	s.w.Vanish(Workers)
	groups, err := s.p.Groups(s.ctx())
	byID := s.byID(groups)
	if g, ok := byID[Workers]; ok {
		s.Errorf("a group that is no more is listed: %+v", g)
	}
	if g, ok := byID[Others]; !ok || g.Stale != "" {
		s.Errorf("%s suffers from another group's end: %v, %v", Others, g.Stale, err)
	}
	s.wantKind(s.p.Resize(s.ctx(), Workers, 2, 3), provider.NotFound)
	s.wantKind(s.p.Delete(s.ctx(), Workers, victim), provider.NotFound)
}
