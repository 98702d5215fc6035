package groups

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
	"github.com/autoscaler-agent/autoscaler-agent/internal/schedule"
)

// Parse reads groups.yaml. The error joins every mistake: its place, such as
// "groups.workers.price", and what to write instead. An empty file says nothing.
// clouds are the providers that may have a section of their own, by name.
func Parse(data []byte, clouds map[string]Section) (File, error) {
	lines, second := placesOf(data)
	doc, err := document(data)
	if err := errors.Join(second, err); err != nil {
		return File{}, err
	}
	r := &reader{lines: lines}
	f := File{Groups: map[string]Group{}}
	names := map[string]bool{}
	known := fields{
		"groups": func(at string, v any) {
			r.entries(at, v, func(at, name string, v any) {
				if _, err := path.Match(name, ""); err != nil {
					r.bad(at, "%q is no pattern: close the bracket, or write the group's name", name)
				}
				if name == "" {
					r.bad(at, "the name of a group is empty: write the group's name, or * for every group")
				}
				f.Groups[name] = r.group(at, v)
			})
		},
		"headroom": func(at string, v any) {
			r.each(at, v, func(at string, v any) {
				h := r.headroom(at, v)
				if h.Name != "" && names[h.Name] {
					r.bad(at+".name", "%q stands twice: every headroom has a name of its own", h.Name)
				}
				names[h.Name] = true
				f.Headroom = append(f.Headroom, h)
			})
		},
	}
	for name, read := range clouds {
		known[name] = func(at string, v any) { r.section(at, v, name, read, &f) }
	}
	r.object("", doc, known)
	if err := r.wrong(); err != nil {
		return File{}, err
	}
	return f, nil
}

// section hands a provider what is its own.
func (r *reader) section(at string, v any, name string, read Section, f *File) {
	text, err := json.Marshal(v)
	if err == nil {
		err = read(text)
	}
	if err != nil {
		for _, e := range flatten(err) {
			place, words := r.within(at, e.Error())
			r.bad(place, "%s", words)
		}
		return
	}
	r.marks(at, v)
	if f.Clouds == nil {
		f.Clouds = map[string]json.RawMessage{}
	}
	f.Clouds[name] = text
}

// marks judges the labels and taints of a section, wherever they are: a provider package knows nothing of
// the API server's rules.
func (r *reader) marks(at string, v any) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			r.marks(fmt.Sprintf("%s[%d]", at, i), item)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch v[key].(type) {
			case map[string]any:
				if key == "labels" {
					r.nodeLabels(join(at, key), v[key])
					continue
				}
			case []any:
				if key == "taints" {
					r.taints(join(at, key), v[key])
					continue
				}
			}
			r.marks(join(at, key), v[key])
		}
	}
}

// within splits what a section's reader says ("groups[0].flavor: name a flavor") into the
// place in the file and the words.
func (r *reader) within(at, text string) (place, words string) {
	field, words, ok := strings.Cut(text, ": ")
	place = join(at, field)
	if strings.HasPrefix(field, "[") {
		place = at + field
	}
	if ok && !strings.ContainsAny(field, " \"") && (r.lines[place] > 0 || r.lines[place[:strings.LastIndexAny(place, ".[")]] > 0 && strings.ContainsAny(field, ".[")) {
		return place, words
	}
	return at, text
}

// boundsWords say where a group's bounds are kept.
const boundsWords = "the bounds of a group are kept by the cloud: set them there (on AWS the Auto Scaling group's own minimum and maximum, or AUTOSCALER_AWS_GROUPS=min:max:name)"

func (r *reader) group(at string, v any) (g Group) {
	r.object(at, v, fields{
		"min": r.refused(boundsWords), "max": r.refused(boundsWords),
		"price":    given(&g.Price, func(at string, v any) (float64, bool) { return r.number(at, v, 0, "0.192") }),
		"priority": given(&g.Priority, func(at string, v any) (int, bool) { return r.whole(at, v, 0) }),
		"balance":  given(&g.Balance, r.text),
		"pause":    into(&g.Pause, r.pause),
		"options":  func(at string, v any) { r.options(at, v, &g.Options) },
		"template": into(&g.Template, r.template),
	})
	return g
}

// pause reads true, a time, or a mapping of both with a reason.
func (r *reader) pause(at string, v any) *cluster.Pause {
	switch x := v.(type) {
	case bool:
		if !x {
			return nil
		}
		return &cluster.Pause{Why: "pause: true in groups.yaml"}
	case string:
		until, ok := r.time(at, x)
		if !ok {
			return nil
		}
		return &cluster.Pause{Why: "by groups.yaml", Until: until}
	}
	p := &cluster.Pause{Why: "by groups.yaml"}
	r.object(at, v, fields{
		"until": func(at string, v any) {
			if s, ok := r.text(at, v); ok {
				p.Until, _ = r.time(at, s)
			}
		},
		"why": func(at string, v any) { p.Why, _ = r.text(at, v) },
	})
	return p
}

func (r *reader) time(at, s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		r.bad(at, "%q is no time: write for example 2026-12-24T18:00:00Z, or true", s)
		return time.Time{}, false
	}
	return t, true
}

func (r *reader) options(at string, v any, o *cluster.Options) {
	r.object(at, v, fields{
		"scaleDownUtilizationThreshold":    into(&o.ScaleDownUtilization, r.share),
		"scaleDownGpuUtilizationThreshold": into(&o.ScaleDownGPUUtilization, r.share),
		"scaleDownUnneededTime":            into(&o.ScaleDownUnneededTime, r.duration),
		"scaleDownUnreadyTime":             into(&o.ScaleDownUnreadyTime, r.duration),
		"maxNodeProvisionTime":             into(&o.MaxNodeProvisionTime, r.duration),
		"maxNodeStartupTime":               into(&o.MaxNodeStartupTime, r.duration),
		"ignoreDaemonSetsUtilization":      given(&o.IgnoreDaemonSetsUtilization, r.yes),
		"drift":                            given(&o.Drift, r.yes),
		"maxNodeAge":                       func(at string, v any) { o.MaxNodeAge = r.neverOr(at, v, time.Hour) },
		"repairAfter":                      func(at string, v any) { o.RepairAfter = r.neverOr(at, v, time.Minute) },
		"replaceDrainTime":                 into(&o.ReplaceDrainTime, r.duration),
		"disruptionBudgets": func(at string, v any) {
			if text, ok := r.text(at, v); ok {
				list, err := schedule.Parse(text)
				if o.Budgets = &list; err != nil {
					r.bad(at, "%v", err)
				}
			}
		},
	})
}

func (r *reader) template(at string, v any) (t Template) {
	r.object(at, v, fields{
		"labels":  into(&t.Labels, r.nodeLabels),
		"taints":  into(&t.Taints, r.taints),
		"devices": items(r, &t.Devices, r.devices),
		"capacity": func(at string, v any) {
			t.Capacity = map[string]int64{}
			r.entries(at, v, func(at, name string, v any) {
				if !r.resource(at, name) {
					return
				}
				n, ok := r.quantity(at, name, v)
				if ok && n == 0 && slices.Contains([]string{"cpu", "memory", "pods"}, name) {
					r.bad(at, "no machine is without %s: write how much it has, or leave the line out", name)
				}
				if ok {
					t.Capacity[name] = n
				}
			})
		},
	})
	return t
}

func (r *reader) labels(at string, v any) map[string]string {
	out := map[string]string{}
	r.entries(at, v, func(at, key string, v any) {
		if s, ok := r.text(at, v); ok {
			r.label(at, key, s)
			out[key] = s
		}
	})
	return out
}

// hostname is the label by which every machine is another one.
const hostname = "kubernetes.io/hostname"

// nodeLabels reads the labels of all nodes of a group.
func (r *reader) nodeLabels(at string, v any) map[string]string {
	out := r.labels(at, v)
	if _, there := out[hostname]; there {
		r.bad(join(at, hostname), "every machine has a value of its own: leave it out")
	}
	return out
}

// taints reads a list in kubectl's form, key=value:Effect or key:Effect.
func (r *reader) taints(at string, v any) (out []cluster.Taint) {
	r.each(at, v, func(at string, v any) {
		s, ok := r.text(at, v)
		if !ok {
			return
		}
		t, err := nodespec.ParseTaint(s)
		if err != nil {
			r.bad(at, "%v", err)
		} else if slices.ContainsFunc(out, func(o cluster.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			r.bad(at, "a second taint %s with the effect %s: a Node has one, keep one", t.Key, t.Effect)
		}
		out = append(out, t)
	})
	return out
}

func (r *reader) headroom(at string, v any) (h Headroom) {
	var total cluster.Resources
	forms, understood := map[string]bool{}, true
	amount := func(to *int64, name string) func(string, any) {
		return func(at string, v any) {
			forms["amounts"] = true
			n, ok := r.quantity(at, name, v)
			*to, understood = n, understood && ok
		}
	}
	r.object(at, v, fields{
		"name":   func(at string, v any) { h.Name, _ = r.text(at, v) },
		"cpu":    amount(&total.MilliCPU, "cpu"),
		"memory": amount(&total.Memory, "memory"),
		"pods": func(at string, v any) {
			if forms["pods"] = true; !forms["amounts"] { // what is said in two ways is told below
				r.pods(at, v, &h)
			}
		},
		"nodes":        func(at string, v any) { forms["nodes"] = true; r.nodes(at, v, &h) },
		"nodeSelector": into(&h.Piece.NodeSelector, r.labels),
		"tolerations":  items(r, &h.Piece.Tolerations, r.toleration),
		"schedule":     items(r, &h.Schedules, r.schedule),
	})
	if h.Name == "" {
		r.bad(at+".name", "give it a name: the journal speaks of it by that")
	}
	if len(forms) != 1 {
		r.bad(at, "say how much in one way: cpu and memory, or pods (count, cpu, memory), or nodes (count, group)")
	}
	if forms["amounts"] {
		if understood && total.MilliCPU+total.Memory <= 0 {
			r.bad(at, "cpu and memory are both nothing: give at least one")
		}
		h.Piece.Requests, h.Count = cut(total)
	}
	return h
}

// mostHeadroom is more pods or machines than one cluster has.
const mostHeadroom = 100_000

// count reads how many pods or machines a headroom keeps room for.
func (r *reader) count(at string, v any) int {
	n, _ := r.whole(at, v, 0)
	if n > mostHeadroom {
		r.bad(at, "%d is too much: write a number up to %d", n, mostHeadroom)
	}
	return n
}

func (r *reader) pods(at string, v any, h *Headroom) {
	sized, before := int64(0), len(r.errs) // sized of extended resources
	r.entries(at, v, func(at, key string, v any) {
		switch key {
		case "count":
			h.Count = r.count(at, v)
		case "cpu":
			h.Piece.Requests.MilliCPU, _ = r.quantity(at, key, v)
		case "memory":
			h.Piece.Requests.Memory, _ = r.quantity(at, key, v)
		case "ephemeral-storage":
			h.Piece.Requests.EphemeralStorage, _ = r.quantity(at, key, v)
		default:
			if !r.resource(at, key) {
				return
			}
			if !strings.Contains(key, "/") {
				r.bad(at, "a headroom's pods ask for count, cpu, memory, ephemeral-storage and extended resources such as nvidia.com/gpu")
				return
			}
			if h.Piece.Requests.Extended == nil {
				h.Piece.Requests.Extended = map[string]int64{}
			}
			n, _ := r.quantity(at, key, v)
			h.Piece.Requests.Extended[key], sized = n, sized+n
		}
	})
	if h.Count == 0 && !r.wrongAt(at+".count") {
		r.bad(at+".count", "say how many pods")
	}
	if ask := h.Piece.Requests; len(r.errs) == before && ask.MilliCPU+ask.Memory+ask.EphemeralStorage+sized == 0 {
		r.bad(at, "say how large one pod is, for example {count: 3, cpu: 500m, memory: 1Gi}: pods of no size need no room")
	}
}

func (r *reader) nodes(at string, v any, h *Headroom) {
	r.object(at, v, fields{
		"count": func(at string, v any) { h.Count = r.count(at, v) },
		"group": func(at string, v any) {
			if s, ok := r.text(at, v); ok {
				h.Group = cluster.GroupID(s)
			}
		},
	})
	if h.Count == 0 && !r.wrongAt(at+".count") || h.Group == "" {
		r.bad(at, "say how many machines of which group: {count: 1, group: workers}")
	}
}

func (r *reader) toleration(at string, v any) (t cluster.Toleration) {
	word := func(to *string, allowed ...string) func(string, any) {
		return func(at string, v any) {
			s, ok := r.text(at, v)
			if ok && len(allowed) > 0 && !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+s+" ") {
				r.bad(at, "%q: write %s", s, strings.Join(allowed, " or "))
			}
			*to = s
		}
	}
	r.object(at, v, fields{
		"key": word(&t.Key), "value": word(&t.Value), "operator": word(&t.Operator, "Exists", "Equal"),
		"effect": word(&t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute"),
	})
	return t
}

func (r *reader) schedule(at string, v any) Schedule {
	s := Schedule{Days: [7]bool{true, true, true, true, true, true, true}, Zone: time.UTC}
	r.object(at, v, fields{
		"days": parsed(r, &s.Days, parseDays),
		"hours": func(at string, v any) {
			if text, ok := r.text(at, v); ok {
				var err error
				if s.From, s.To, err = parseHours(text); err != nil {
					r.bad(at, "%v", err)
				}
			}
		},
		"timeZone": parsed(r, &s.Zone, func(text string) (*time.Location, error) {
			zone, err := time.LoadLocation(text)
			if err != nil {
				return time.UTC, fmt.Errorf("%q is no time zone of this machine: write for example Europe/Berlin (package tzdata) or UTC", text)
			}
			return zone, nil
		}),
	})
	return s
}
