package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// kept are fields that an object of the API cannot be without: they go only with what
// they belong to. A world without them would differ for another reason than the one
// that is looked for.
var kept = []string{
	"metadata", "name", "namespace", "uid", "operator", "key", "topologyKey", "whenUnsatisfiable", "maxSkew", "effect",
	"containers", "nodeSelectorTerms", "labelSelector", "provisioner", "volumeBindingMode", "driver", "volumeHandle",
	"claimName", "accessModes", "count", "attacher", "source", "nodeName", "spec", "status", "phase", "resources",
	"storage", "values", "claimRef", "capacity", "required", "kind", "controller", "policyType", "cel", "expression", "deviceClassName", "allocationMode", "pool", "resourceSliceCount", "generation", "counters", "value",
}

// Shrink makes the world of a difference as small as it can be while the same
// waiting pod and node still differ in the same way. It deletes one thing after
// another, large things first, until nothing can go.
func Shrink(j *Judge, w *World, d Difference) (*World, Difference, error) {
	small := &World{}
	*small = *w
	small.Waiting = w.Waiting[d.Pod : d.Pod+1]
	node := w.Nodes[d.Node].Name
	if now, ok := still(j, small, node, d); ok {
		d = now
	} else {
		small = w
	}
	tree, err := toTree(small)
	if err != nil {
		return nil, d, err
	}
	try := func() bool {
		var next World
		if fromTree(tree, &next) != nil {
			return false
		}
		now, ok := still(j, &next, node, d)
		if ok {
			small, d = &next, now
		}
		return ok
	}
	for cut(tree, try) {
	}
	return small, d, nil
}

// still tells whether a world differs on a node in the way of d: the same side
// refuses, for the same filter.
func still(j *Judge, w *World, node string, d Difference) (Difference, bool) {
	if len(w.Waiting) == 0 || !slices.ContainsFunc(w.Nodes, func(n *corev1.Node) bool { return n.Name == node }) {
		return d, false
	}
	ours, err := Answers(w)
	if err != nil {
		return d, false
	}
	real, err := j.Ask(w)
	if err != nil {
		return d, false
	}
	for _, now := range Compare(w, real, ours) {
		if w.Nodes[now.Node].Name == node && now.Real.Fits == d.Real.Fits && now.Real.Filter == d.Real.Filter && now.Ours.Rule == d.Ours.Rule {
			return now, true
		}
	}
	return d, false
}

func toTree(w *World) (map[string]any, error) {
	b, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("shrink: %w", err)
	}
	var tree map[string]any
	return tree, json.Unmarshal(b, &tree)
}

func fromTree(tree map[string]any, w *World) error {
	b, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, w)
}

// cut tries to delete every member of a tree, outer ones first, and tells whether
// anything went.
func cut(v any, try func() bool) bool {
	went := false
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			switch child := v[key].(type) {
			case []any:
				list, some := cutList(child, try, func(l []any) { v[key] = l })
				v[key] = list
				went = went || some
				if len(list) > 0 || slices.Contains(kept, key) {
					continue
				}
			case map[string]any:
				if cut(child, try) {
					went = true
				}
			}
			if slices.Contains(kept, key) {
				continue
			}
			old := v[key]
			delete(v, key)
			if try() {
				went = true
			} else {
				v[key] = old
			}
		}
	}
	return went
}

func cutList(list []any, try func() bool, set func([]any)) ([]any, bool) {
	went := false
	for size := max(len(list)/2, 1); size >= 1; size /= 2 {
		for i := 0; i < len(list); {
			end := min(i+size, len(list))
			shorter := slices.Concat(list[:i], list[end:])
			set(shorter)
			if try() {
				list, went = shorter, true
			} else {
				set(list)
				i = end
			}
		}
	}
	for _, child := range list {
		if cut(child, try) {
			went = true
		}
	}
	return list, went
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Minimal shrinks a finding and writes it as a story.
func Minimal(ctx context.Context, program string, f Finding) ([]byte, error) {
	j, err := StartJudge(ctx, program)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	w, d, err := Shrink(j, f.World, f.Diffs[0])
	if err != nil {
		return nil, err
	}
	real, err := j.Ask(w)
	if err != nil {
		return nil, err
	}
	return Story(fmt.Sprintf("Found by seed %d on node %s.\n%s", f.Seed, w.Nodes[d.Node].Name, d), w, real)
}
