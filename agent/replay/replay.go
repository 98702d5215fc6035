// Package replay decides recorded rounds once more, as they were or by another policy, and
// says what differs. The flight recorder (internal/flight) wrote them.
//
// It refuses to look at a cluster or a cloud: a round holds everything that was decided on.
package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/internal/flight"
)

// Round is one recorded round, decided once more.
type Round struct {
	At       time.Time     `json:"at"`
	Version  string        `json:"version"` // of the agent that decided then
	Equal    bool          `json:"equal"`   // plan, timer and memory, bit for bit
	Diff     []string      `json:"diff,omitempty"`
	Recorded decision.Data `json:"recorded"`
	Now      decision.Data `json:"now"`
	round    flight.Round
	memory   decision.Memory
	policy   decision.Policy
}

// Rounds reads what the flight recorder wrote and decides every round once more, with
// policy changed as the settings ("UNNEEDED_FOR=5m") say. Of a torn file, the rounds
// before the tear are returned with the error.
func Rounds(in io.Reader, settings []string) ([]Round, error) {
	rounds, torn := flight.Read(in)
	out := make([]Round, 0, len(rounds))
	for _, r := range rounds {
		one, err := replay(r, settings)
		if err != nil {
			return out, fmt.Errorf("round of %s: %w", r.At.UTC().Format(time.RFC3339), err)
		}
		out = append(out, one)
	}
	return out, torn
}

// JudgePolicy finds the mistakes in the settings that Rounds takes.
func JudgePolicy(settings []string) error {
	var errs []error
	for _, s := range settings {
		errs = append(errs, change(&decision.Policy{}, s))
	}
	return errors.Join(errs...)
}

func replay(r flight.Round, settings []string) (Round, error) {
	x := Round{At: r.At, Version: r.Version, round: r}
	for _, part := range []struct {
		from json.RawMessage
		to   any
	}{{r.Memory, &x.memory}, {r.Policy, &x.policy}, {r.Decided, &x.Recorded}} {
		if err := json.Unmarshal(part.from, part.to); err != nil {
			return x, err
		}
	}
	for _, s := range settings {
		if err := change(&x.policy, s); err != nil {
			return x, err
		}
	}
	p, after := plan.Decide(r.Snapshot, x.memory, x.policy)
	x.Now = p.Data()
	now, err := json.Marshal(x.Now)
	if err != nil {
		return x, err
	}
	left, err := json.Marshal(after)
	if err != nil {
		return x, err
	}
	x.Equal = bytes.Equal(now, r.Decided) && bytes.Equal(left, r.After)
	if !x.Equal {
		x.Diff = difference(recited(x.Recorded, r.After), recited(x.Now, left))
	}
	return x, nil
}

// Explain explains a thing as it was in the round, by the policy that was replayed.
func (x Round) Explain(kind, name string) localapi.Explanation {
	return localapi.Explain(x.round.Snapshot, x.memory, x.policy, nil, kind, name)
}

// recited writes everything that was decided as lines to compare: the lines of the journal,
// the details that they leave out, and the memory.
func recited(d decision.Data, memory json.RawMessage) []string {
	var out []string
	for _, a := range d.Actions {
		out = append(out, a.Text)
		if len(a.Pods) > 0 {
			out = append(out, fmt.Sprintf("grow %s: its pods are %v", a.Group, a.Pods))
		}
	}
	for _, h := range d.Held {
		out = append(out, h.String())
	}
	if !d.Wake.IsZero() {
		out = append(out, "wake at "+d.Wake.UTC().Format(time.RFC3339Nano))
	}
	var parts map[string]json.RawMessage
	if json.Unmarshal(memory, &parts) == nil {
		for _, name := range sorted(parts) {
			out = append(out, "memory: "+name+": "+string(parts[name]))
		}
	}
	return out
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// difference lists the lines that only one side has: "- " the record's, "+ " today's.
func difference(was, is []string) []string {
	var out []string
	for _, l := range was {
		if !slices.Contains(is, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			out = append(out, "+ "+l)
		}
	}
	if len(out) == 0 {
		out = append(out, "the same lines in another order")
	}
	return out
}

// change sets one field of a policy by its environment name, with or without the
// prefix, or by its field name: "AUTOSCALER_SCALING_UNNEEDED_FOR=5m",
// "UNNEEDED_FOR=5m" and "UnneededFor=5m" are one.
func change(p *decision.Policy, setting string) error {
	key, value, ok := strings.Cut(setting, "=")
	if !ok {
		return fmt.Errorf("--policy is %q: write KEY=VALUE", setting)
	}
	same := func(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "_", "")) }
	want := same(strings.TrimPrefix(strings.ToUpper(key), config.Prefix+"_SCALING_"))
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		if same(v.Type().Field(i).Name) == want {
			if err := assign(v.Field(i), value); err != nil {
				return fmt.Errorf("policy %s: %w", key, err)
			}
			return nil
		}
	}
	return fmt.Errorf("policy %s: there is no such setting (autoscaler-agent check --print-env lists %s_SCALING_*)", key, config.Prefix)
}

func assign(f reflect.Value, text string) error {
	switch f.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(text)
		f.SetInt(int64(d))
		return err
	case bool:
		b, err := strconv.ParseBool(text)
		f.SetBool(b)
		return err
	case string:
		f.SetString(text)
		return nil
	case float64:
		x, err := strconv.ParseFloat(text, 64)
		f.SetFloat(x)
		return err
	case int, int32, int64:
		n, err := strconv.ParseInt(text, 10, f.Type().Bits())
		f.SetInt(n)
		return err
	}
	return fmt.Errorf("a %s cannot be set here", f.Type())
}
