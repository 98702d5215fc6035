package providertest

import (
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The cases of Source: what a template starts its next instance from, and what each instance was
// started from. A provider that tells neither names them in Suite.Cannot.

// sourceIsTold: an instance that was started from the template as it is differs from it in
// nothing, and both tell something to compare.
func sourceIsTold(s *stage) {
	for id, g := range s.read() {
		if len(g.Template.Source) == 0 {
			s.Errorf("the template of %s does not tell its source", id)
		}
		for _, in := range g.Instances {
			if in.Source == nil {
				s.Errorf("%s of %s does not tell its source", in.ID, id)
			}
			if d := in.Source.Differences(g.Template.Source); len(d) > 0 {
				s.Errorf("%s of %s was started from its template and differs: %v", in.ID, id, d)
			}
			both := 0
			for name := range in.Source {
				if _, told := g.Template.Source[name]; told {
					both++
				}
			}
			if both == 0 {
				s.Errorf("%s and its template tell no property both: %v, %v", in.ID, in.Source, g.Template.Source)
			}
		}
	}
}

// sourceAfterAChange: an instance that was started before a change of its template tells the old
// source, one that was started after it the new one, and no other group is concerned.
func sourceAfterAChange(s *stage) {
	change := ability[ChangeTemplate](s)
	before := s.read()
	old := before[Workers].Template.Source
	change.ChangeTemplate(s)
	after := s.group(Workers)
	if len(old.Differences(after.Template.Source)) == 0 {
		s.Errorf("the template was changed and its source was not: %v", after.Template.Source)
	}
	for _, in := range after.Instances {
		s.wantOld(in, old, after.Template.Source)
	}
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 3))
	s.settle()
	isOld := map[cluster.InstanceID]bool{}
	for _, in := range before[Workers].Instances {
		isOld[in.ID] = true
	}
	groups := s.read()
	fresh := 0
	for _, in := range groups[Workers].Instances {
		if isOld[in.ID] {
			s.wantOld(in, old, groups[Workers].Template.Source)
			continue
		}
		fresh++
		if d := in.Source.Differences(groups[Workers].Template.Source); len(in.Source) == 0 || len(d) > 0 {
			s.Errorf("%s was started after the change; it tells %v and differs in %v", in.ID, in.Source, d)
		}
	}
	if fresh != 1 {
		s.Errorf("%d new instances, want 1", fresh)
	}
	others := groups[Others]
	if !maps.Equal(others.Template.Source, before[Others].Template.Source) {
		s.Errorf("%s has another source: %v", Others, others.Template.Source)
	}
	for _, in := range others.Instances {
		if d := in.Source.Differences(others.Template.Source); len(d) > 0 {
			s.Errorf("%s of %s differs: %v", in.ID, Others, d)
		}
	}
}

// wantOld wants an instance to differ from the template in what was changed, and to tell what it
// was before.
func (s *stage) wantOld(in cluster.Instance, old, now cluster.Spec) {
	s.Helper()
	diff := in.Source.Differences(now)
	if len(diff) == 0 {
		s.Errorf("%s was started before the change and differs in nothing", in.ID)
	}
	if d := in.Source.Differences(old); len(d) > 0 {
		s.Errorf("%s was started from the old source and differs from it: %v", in.ID, d)
	}
	for _, d := range diff {
		if d.Is == d.Wanted || d.Wanted != now[d.Property] {
			s.Errorf("%s: %v", in.ID, d)
		}
	}
}

// sourceThroughRotation: other join values (a token, an endpoint, the hashes of a CA) replace no
// machine, neither those from before nor those from after.
func sourceThroughRotation(s *stage) {
	rotate := ability[RotateJoin](s)
	s.read()
	rotate.RotateJoin(s)
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 3))
	s.settle()
	for id, g := range s.read() {
		for _, in := range g.Instances {
			if d := in.Source.Differences(g.Template.Source); len(in.Source) == 0 || len(d) > 0 {
				s.Errorf("%s of %s, which tells %v, differs after new join values: %v", in.ID, id, in.Source, d)
			}
		}
	}
}

// sourceTellsUserData: other user data is a difference of those that were there before, and the
// only one.
func sourceTellsUserData(s *stage) {
	change := ability[ChangeUserData](s)
	before := s.group(Workers)
	change.ChangeUserData(s)
	s.ok(s.p.Resize(s.ctx(), Workers, 2, 3))
	s.settle()
	g := s.group(Workers)
	for _, in := range g.Instances {
		d := in.Source.Differences(g.Template.Source)
		old := slices.ContainsFunc(before.Instances, func(o cluster.Instance) bool { return o.ID == in.ID })
		if old && (len(d) != 1 || d[0].Property != "user data") || !old && len(d) > 0 {
			s.Errorf("%s (there before: %t) tells %v and differs: %v", in.ID, old, in.Source, d)
		}
	}
}
