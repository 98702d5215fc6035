package oracle

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// A story is a world that once told fit and kube-scheduler apart, in txtar form: a
// comment, the world in YAML, and what kube-scheduler says about each waiting pod on
// each node.

// Story writes a world and the real verdicts.
func Story(comment string, w *World, real *Ruling) ([]byte, error) {
	tree, err := toTree(w)
	if err != nil {
		return nil, err
	}
	prune(tree)
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("write a story: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n-- world --\n%s-- kube-scheduler --\n%s", strings.TrimSpace(comment), text, verdicts(w, real))
	return b.Bytes(), nil
}

// verdicts are the lines of a story's second section.
func verdicts(w *World, real *Ruling) string {
	var b strings.Builder
	for p, pod := range w.Waiting {
		for n, node := range w.Nodes {
			fmt.Fprintf(&b, "%s on %s: %s\n", pod.Name, node.Name, verdict(real.Cells[p][n]))
		}
	}
	return b.String()
}

func verdict(v Judgement) string {
	if v.Fits {
		return "fits"
	}
	return v.Filter + ": " + v.Reason
}

// ReadStory is the inverse of Story.
func ReadStory(text []byte) (w *World, want string, err error) {
	_, rest, ok := strings.Cut(string(text), "-- world --\n")
	if !ok {
		return nil, "", fmt.Errorf("read a story: no world section")
	}
	world, want, ok := strings.Cut(rest, "-- kube-scheduler --\n")
	if !ok {
		return nil, "", fmt.Errorf("read a story: no kube-scheduler section")
	}
	w = &World{}
	if err := yaml.UnmarshalStrict([]byte(world), w); err != nil {
		return nil, "", fmt.Errorf("read a story: %w", err)
	}
	return w, want, nil
}

// prune drops what encoding/json writes of structs that are not pointers. An empty
// selector is not among them: it means something else than none.
func prune(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			prune(child)
			inner, isMap := child.(map[string]any)
			switch key {
			case "nodeInfo", "daemonEndpoints":
				delete(v, key)
			case "spec", "status", "resources", "metadata":
				if isMap && len(inner) == 0 {
					delete(v, key)
				}
			}
			if child == nil {
				delete(v, key)
			}
		}
	case []any:
		for _, child := range v {
			prune(child)
		}
	}
}
