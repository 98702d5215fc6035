package inventory

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// mergeGroups keeps the last good facts of every group that the new read does not tell
// completely. A group is removed only by a read without an error.
func mergeGroups(old, got []cluster.NodeGroup, err error) []cluster.NodeGroup {
	last := make(map[cluster.GroupID]cluster.NodeGroup, len(old))
	for _, g := range old {
		last[g.ID] = g
	}
	var out []cluster.NodeGroup
	for _, g := range got {
		if was, ok := last[g.ID]; ok {
			g = mergeGroup(was, g)
		}
		delete(last, g.ID)
		out = append(out, g)
	}
	if err == nil {
		return out
	}
	for _, g := range old {
		if was, ok := last[g.ID]; ok {
			was.Stale = "not read: " + firstLine(err)
			out = append(out, was)
		}
	}
	return out
}

// mergeSome replaces the groups that a read of some tells of, unless a whole read has been
// newer. Groups come and go with whole reads only, and a group that is stale is stale until a
// whole read: only that one sees what is wrong between two groups.
func mergeSome(old, got []cluster.NodeGroup, only []cluster.GroupID, err error) []cluster.NodeGroup {
	byID := make(map[cluster.GroupID]cluster.NodeGroup, len(got))
	for _, g := range got {
		byID[g.ID] = g
	}
	out := slices.Clone(old)
	for i, was := range old {
		now, ok := byID[was.ID]
		switch {
		case ok && !now.ReadAt.Before(was.ReadAt):
			out[i] = mergeGroup(was, now)
			if was.Stale != "" {
				out[i].Stale = was.Stale
			}
		case !ok && err != nil && slices.Contains(only, was.ID):
			out[i].Stale = "not read: " + firstLine(err)
		}
	}
	return out
}

// mergeGroup keeps the facts of a group that the new read could not tell, each kind by
// itself: membership, template, failures.
func mergeGroup(was, now cluster.NodeGroup) cluster.NodeGroup {
	out := now
	if now.Stale != "" {
		out = was
		out.Stale, out.TemplateStale, out.FailuresStale = now.Stale, now.TemplateStale, now.FailuresStale
		if now.TemplateStale == "" && now.Template.Spec != "" {
			out.Template, out.Quota = now.Template, now.Quota
		}
		if now.FailuresStale == "" && len(now.Failures) > 0 {
			out.Failures = now.Failures
		}
		return out
	}
	if now.TemplateStale != "" && was.Template.Spec != "" {
		out.Template, out.Quota = was.Template, was.Quota
	}
	if now.FailuresStale != "" {
		out.Failures = was.Failures
	}
	return out
}

func firstLine(err error) string {
	var e *provider.Error
	if errors.As(err, &e) {
		return e.Error()
	}
	return err.Error()
}

// sameFacts compares two reads without their times.
func sameFacts(a, b []cluster.NodeGroup) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		x.ReadAt, y.ReadAt, x.NamesReadAt, y.NamesReadAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// WithReadTimes is old with the read times of now. The other facts keep their pointers,
// so that a comparison of pointers finds nothing new.
func WithReadTimes(old, now []cluster.NodeGroup) []cluster.NodeGroup {
	out := slices.Clone(old)
	for i := range out {
		out[i].ReadAt, out[i].NamesReadAt = now[i].ReadAt, now[i].NamesReadAt
	}
	return out
}
