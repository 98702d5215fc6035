package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"

	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/jinja"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/yaml11"
)

// value is a YAML value and the place that its lines belong to.
type value struct {
	*yaml.Node
	*linter
}

// config is the cloud-config that all parts together make.
type config struct {
	keys   []string
	values map[string][]value // by key; lists that were merged are several
	lost   []lostValue
}

// lostValue is one that another replaces.
type lostValue struct {
	key  string
	line int
	value
	by string
}

func (c *config) set(key string, v ...value) {
	if c.values == nil {
		c.values = map[string][]value{}
	}
	if _, ok := c.values[key]; !ok {
		c.keys = append(c.keys, key)
	}
	c.values[key] = v
}

// list is the items of a list; ok is false where the value is none.
func (c *config) list(key string) (items []value, ok bool) {
	for _, v := range c.values[key] {
		if v.Kind != yaml.SequenceNode {
			return nil, false
		}
		for _, n := range v.Content {
			items = append(items, value{yaml11.Target(n), v.linter})
		}
	}
	return items, true
}

func (l *linter) notYAML(err error, otherwise string) {
	var f yaml11.Error
	if errors.As(err, &f) {
		l.add(Schema, true, f.Line, "cloud-init refuses this YAML: %s", f.Text)
		return
	}
	l.add(Schema, true, 0, "%s", otherwise)
}

// add merges a part of cloud-config into what the parts before it made.
func (c *config) add(p part) {
	p.secrets(p.text)
	if p.System == "flatcar" {
		p.add(Schema, false, 0, "Flatcar reads cloud-config only in part, and at every boot: use ignition")
	}
	root, err := yaml11.Load(p.text)
	switch {
	case err != nil:
		p.notYAML(err, "")
		return
	case strings.HasPrefix(p.text, "\ufeff"):
		p.add(Schema, true, 1, "begins with a byte order mark, and cloud-init refuses the YAML: save it as UTF-8 without one")
		return
	case root == nil && p.branch:
		return
	case root == nil:
		p.add(Schema, true, 0, "cloud-config without a key: cloud-init would do nothing with it")
		return
	case root.Kind != yaml.MappingNode:
		p.add(Schema, true, root.Line, "cloud-config is %s, and cloud-init refuses it: write keys such as runcmd", yaml11.Describe(root))
		return
	}
	if !p.template() && bareTemplate.MatchString(p.text) {
		line := lineOf(p.text, bareTemplate)
		p.add(Altered, true, line, "%s is rendered only where the first line is \"## template: jinja\"", bareTemplate.FindStringSubmatch(p.text)[0])
	}
	kept, lost := yaml11.Fields(root)
	for _, f := range lost {
		c.lost = append(c.lost, lostValue{f.Name, f.Key.Line, value{f.Value, p.linter}, "the same key further down"})
	}
	how, err := mergers(kept, p.merge)
	if err != nil {
		p.add(Schema, true, 0, "%v, and cloud-init refuses the part: write list(append)+dict(recurse_array)+str()", err)
		return
	}
	for _, f := range kept {
		if f.Name == "merge_how" || f.Name == "merge_type" {
			continue
		}
		c.merge(f, value{f.Value, p.linter}, how)
	}
}

// bareTemplate is what a template would render and a text without its first line does not.
var bareTemplate = lazyregexp.New(`\{\{-?\s*(?:v1|ds)\.[^}]*\}\}`)

// template tells whether the part was rendered.
func (p part) template() bool { return strings.Contains(p.text, jinja.Unknown) }

// merging is how values of a key meet: by default the later replaces the earlier.
type merging struct {
	given      bool
	dictionary []string // options of dict(...); nil: no such merger
	list       []string
}

var mergerForm = lazyregexp.New(`^([a-z_][a-z0-9_]*)\((.*?)\)$`)

// mergers reads merge_how of the part, else its header.
func mergers(kept []yaml11.Field, header string) (merging, error) {
	m := merging{}
	take := func(name string, options []string) error {
		m.given = true
		switch name {
		case "dict":
			m.dictionary = append([]string{""}, options...)
		case "list":
			m.list = append([]string{""}, options...)
		case "str":
		default:
			return fmt.Errorf("there is no merger %q", name)
		}
		return nil
	}
	text := header
	for _, key := range []string{"merge_type", "merge_how"} {
		i := slices.IndexFunc(kept, func(f yaml11.Field) bool { return f.Name == key })
		if i < 0 || yaml11.Kind(kept[i].Value) == "null" {
			continue
		}
		if text = kept[i].Value.Value; kept[i].Value.Kind == yaml.SequenceNode {
			text = ""
			for _, item := range kept[i].Value.Content {
				name, settings := yaml11.Get(item, "name"), yaml11.Get(item, "settings")
				if name == nil || settings == nil {
					return m, errors.New("merge_how wants name and settings in each item")
				}
				var options []string
				for _, o := range settings.Content {
					options = append(options, o.Value)
				}
				if err := take(strings.ReplaceAll(name.Value, "-", "_"), options); err != nil {
					return m, err
				}
			}
		}
	}
	for name := range strings.SplitSeq(text, "+") {
		name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
		if name == "" {
			continue
		}
		form := mergerForm.FindStringSubmatch(name)
		if form == nil {
			return m, fmt.Errorf("%q is not a way to merge", name)
		}
		var options []string
		for o := range strings.SplitSeq(form[2], ",") {
			options = append(options, strings.TrimSpace(o))
		}
		if err := take(form[1], options); err != nil {
			return m, err
		}
	}
	return m, nil
}

// merge sets a key whose value may stand there already.
func (c *config) merge(f yaml11.Field, v value, how merging) {
	old, exists := c.values[f.Name]
	if !exists {
		c.set(f.Name, v)
		return
	}
	lose := func(lost []value, by string) {
		for _, o := range lost {
			c.lost = append(c.lost, lostValue{f.Name, o.Line, o, by})
		}
	}
	has := func(options []string, names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(options, n) })
	}
	later := "a later part (give it merge_how: list(append)+dict(recurse_array)+str())"
	switch {
	case !how.given || has(how.dictionary, "replace"):
		lose(old, later)
		c.set(f.Name, v)
	case how.dictionary == nil || v.Kind == yaml.SequenceNode && !has(how.dictionary, "recurse_array", "recurse_list"):
		lose([]value{v}, "an earlier part, as merge_how wants it")
	case v.Kind == yaml.SequenceNode && has(how.list, "append"):
		c.set(f.Name, append(slices.Clone(old), v)...)
	case v.Kind == yaml.SequenceNode && has(how.list, "prepend"):
		c.set(f.Name, append([]value{v}, old...)...)
	case v.Kind == yaml.SequenceNode: // index by index: the longer one's rest stays
		lose(old, later)
		c.set(f.Name, v)
	}
}

// patch applies a JSON patch of whole keys and of ends of lists; deeper ones are not judged.
func (c *config) patch(p part) {
	text := strings.TrimSpace(p.text)
	text, ok := strings.CutPrefix(text, "#cloud-config-jsonp")
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &operations); err != nil || !ok {
		p.add(Schema, true, 0, "#cloud-config-jsonp is followed by no JSON list of operations, and cloud-init refuses it: %v", err)
		return
	}
	for _, o := range operations {
		key, deeper, deep := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
		_, exists := c.values[key]
		if !strings.HasPrefix(o.Path, "/") || !slices.Contains([]string{"add", "replace", "remove", "test", "move", "copy"}, o.Op) || !exists && (deep || o.Op != "add") {
			p.add(Schema, true, 0, "cloud-init refuses the JSON patch: %s %s has nothing to work on", o.Op, o.Path)
			return
		}
		root, err := yaml11.Load(string(o.Value))
		if err != nil || root == nil || o.Op != "add" && o.Op != "replace" || deep && deeper != "-" {
			p.add(Unchecked, false, 0, "the JSON patch %s %s was not looked at", o.Op, o.Path)
			continue
		}
		v := value{root, p.in("JSON patch", nil)}
		if deep {
			list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{root}}
			c.set(key, append(slices.Clone(c.values[key]), value{list, v.linter})...)
			continue
		}
		c.set(key, v)
	}
}
