package providertest

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// providerIDsInEveryForm: whichever way the provider ID stands on the Node, it is that
// instance's, by nothing else than the ID.
func providerIDsInEveryForm(s *stage) {
	forms := ability[Forms](s)
	groups, err := s.p.Groups(s.ctx())
	s.ok(err)
	for _, g := range groups {
		for _, in := range g.Instances {
			all := forms.Forms(in.ID)
			if len(all) == 0 {
				s.Errorf("%s has no written form", in.ID)
			}
			for _, form := range all {
				n := &cluster.Node{Name: "a-name-of-its-own", ProviderID: form}
				if got := cluster.Identify(groups, []*cluster.Node{n}).Instance[n.Name]; got != in.ID {
					s.Errorf("a Node with provider ID %q is instance %q, want %s", form, got, in.ID)
				}
			}
		}
	}
}

// neverJoiningInstance: of a machine that runs and never becomes a Node the cloud's
// facts are all there is, and it can be deleted by them.
func neverJoiningInstance(s *stage) {
	old := s.group(Workers)
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 3))
	s.settle()
	before := s.w.Alive(Workers)
	for _, in := range s.group(Workers).Instances {
		at := slices.IndexFunc(old.Instances, func(o cluster.Instance) bool { return o.ID == in.ID })
		if at >= 0 {
			if !in.Created.Equal(old.Instances[at].Created) {
				s.Errorf("%s was created at %s, and before that at %s", in.ID, in.Created, old.Instances[at].Created)
			}
			continue
		}
		if in.Phase != cluster.PhaseRunning || !in.Member || in.Failure != nil {
			s.Errorf("a machine that runs is %+v", in)
		}
		for _, o := range old.Instances {
			if in.Created.Before(o.Created) {
				s.Errorf("the newest machine was created at %s, before %s of %s: how long it has been awaited is not known", in.Created, o.Created, o.ID)
			}
		}
		s.ok(s.p.Delete(s.ctx(), Workers, in.ID))
		before = slices.DeleteFunc(before, func(id cluster.InstanceID) bool { return id == in.ID })
	}
	s.settle()
	s.wantTarget(Workers, 2)
	s.wantAlive(Workers, before)
}

// resizeWhileDeleting: a cloud that does one thing at a time says Busy, has changed
// nothing, and takes it when the first is done.
func resizeWhileDeleting(s *stage) {
	gone := s.w.Alive(Workers)[0]
	s.ok(s.p.Delete(s.ctx(), Workers, gone))
	if err := s.p.Resize(s.ctx(), Workers, 1, 3); err != nil {
		s.wantLate(err)
		s.wantTarget(Workers, 1)
		s.settle()
		s.ok(s.p.Resize(s.ctx(), Workers, 1, 3))
	}
	s.wantTarget(Workers, 3)
	s.settle()
	s.wantTarget(Workers, 3)
	if alive := s.w.Alive(Workers); len(alive) != 3 || slices.Contains(alive, gone) {
		s.Errorf("alive: %v, want 3 without %s", alive, gone)
	}
	s.ok(s.p.Delete(s.ctx(), Workers, gone))
	s.wantTarget(Workers, 3)
}

// deleteMoreThanSurplus: machines above the target (somebody lowered it, and the cloud
// keeps protected ones) go without lowering it; the others lower it by one each.
func deleteMoreThanSurplus(s *stage) {
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 4))
	s.settle()
	s.w.SetTarget(Workers, 2)
	s.settle()
	alive := s.w.Alive(Workers)
	if len(alive) != 4 || s.w.Target(Workers) != 2 {
		s.Skipf("this cloud has no target of its own that somebody lowers, or ends machines itself for it")
	}
	s.ok(s.p.Delete(s.ctx(), Workers, alive[0]))
	s.wantTarget(Workers, 2)
	s.ok(s.p.Delete(s.ctx(), Workers, alive[1], alive[2]))
	s.wantTarget(Workers, 1)
	s.settle()
	s.wantTarget(Workers, 1)
	s.wantAlive(Workers, alive[3:])
}

func pausedGroup(s *stage) {
	pause := ability[Pause](s)
	pause.Pause(s, true)
	groups := s.read()
	if g := groups[Workers]; g.Paused == "" || g.Stale != "" {
		s.Errorf("paused %q, stale %q; want why the cloud starts nothing", g.Paused, g.Stale)
	}
	if g := groups[Others]; g.Paused != "" {
		s.Errorf("%s is paused too: %s", Others, g.Paused)
	}
	pause.Pause(s, false)
	if g := s.group(Workers); g.Paused != "" {
		s.Errorf("still paused: %s", g.Paused)
	}
}

func templateWithTaintsAndLabels(s *stage) {
	ability[Furnish](s).Furnish(s)
	groups := s.read()
	t := groups[Workers].Template
	if got := t.Labels[FurnishLabel[0]]; got != FurnishLabel[1] {
		s.Errorf("label %s=%q, want %q: %v", FurnishLabel[0], got, FurnishLabel[1], t.Labels)
	}
	if !slices.Contains(t.Taints, FurnishTaint) {
		s.Errorf("taints %v, want %v", t.Taints, FurnishTaint)
	}
	if t.Unknown != "" {
		s.Errorf("the template is not known: %s", t.Unknown)
	}
	if o := groups[Others].Template; o.Labels[FurnishLabel[0]] != "" || slices.Contains(o.Taints, FurnishTaint) {
		s.Errorf("%s has them too", Others)
	}
}

// templateChanges: a template is keyed by its spec, so that what was learnt of the old
// machines ends with it.
func templateChanges(s *stage) {
	change := ability[ChangeTemplate](s)
	before, alive := s.read(), s.w.Alive(Workers)
	change.ChangeTemplate(s)
	after := s.read()
	if was, is := before[Workers].Template.Spec, after[Workers].Template.Spec; was == is || is == "" {
		s.Errorf("the next machine is another one, and the spec is still %q", is)
	}
	if was, is := before[Others].Template.Spec, after[Others].Template.Spec; was != is {
		s.Errorf("%s has another spec, %q after %q", Others, is, was)
	}
	if again := s.group(Workers).Template.Spec; again != after[Workers].Template.Spec {
		s.Errorf("the spec changes by itself: %q after %q", again, after[Workers].Template.Spec)
	}
	s.settle()
	s.wantAlive(Workers, alive)
}

// noGroupsAreNotUnknown: that there are no groups is something that was read.
func noGroupsAreNotUnknown(s *stage) {
	s.w.Vanish(Workers)
	s.w.Vanish(Others)
	groups, err := s.p.Groups(s.ctx())
	if groups == nil || len(groups) != 0 {
		s.Errorf("there are no groups, and the read says %v (nil: unknown) and %v", groups, err)
	}
	for _, e := range provider.Errors(err) {
		if e.Kind != provider.NotFound || e.Group == "" {
			s.Errorf("%v, want at most that a group which is asked for by name is not there", e)
		}
	}
}
