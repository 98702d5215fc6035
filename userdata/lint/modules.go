package lint

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/yaml11"
)

// cloudKeys are the keys of cloud-config that some version of cloud-init reads. Another one is
// most likely misspelled, and cloud-init ignores it.
//
//go:embed keys.txt
var cloudKeys string

func newBoot(l *linter) *boot {
	return &boot{linter: l, scripts: map[string]part{}}
}

// finish judges what a boot does with all parts together, in the order of cloud-init's modules.
func (b *boot) finish() {
	b.tellIgnored()
	for _, key := range b.order {
		p := b.scripts[key]
		when := wholeScript
		if strings.HasPrefix(key, "-per-boot/") {
			when = everyBoot
		}
		p.linter.script(dos2unix(p.text), when)
	}
	c := &b.config
	known := strings.Fields(cloudKeys)
	for _, key := range c.keys {
		v := c.values[key][0]
		switch lost := joins(flat(v.Node)); {
		case slices.Contains(known, key):
		case lost:
			v.add(Altered, true, v.Line, "cloud-init knows no key %s and ignores the join in it: write runcmd", key)
		default:
			v.add(Schema, false, v.Line, "cloud-init knows no key %s and would ignore it", key)
		}
	}
	for _, key := range []string{"hostname", "fqdn"} {
		for _, v := range b.config.values[key] {
			if keep := b.config.values["preserve_hostname"]; v.Kind == yaml.ScalarNode && (len(keep) == 0 || !yaml11.IsTrue(keep[0].Node)) {
				v.hostName(v.Value, key, v.Line)
			}
		}
	}
	b.duplicates()
	files := b.writeFiles()
	boot := b.commands("bootcmd", everyBoot)
	b.commands("runcmd", once)
	b.users()
	b.tooEarly(boot, files)
}

// duplicates tells what other values replace. It stops a join where the join itself is lost, or a
// file that the rest names.
func (b *boot) duplicates() {
	if len(b.config.lost) == 0 {
		return
	}
	left, kept := b.all(), flat(b.values("write_files")...)
	for _, v := range b.config.lost {
		text := flat(v.Node)
		fails := joins(text) && !joins(left)
		if v.key == "write_files" && v.Kind == yaml.SequenceNode {
			for _, n := range v.Content {
				if p := yaml11.Get(n, "path"); p != nil && p.Value != "" && strings.Contains(left, p.Value) && !strings.Contains(kept, p.Value) {
					fails = true
				}
			}
		}
		v.add(Altered, fails, v.line, "%s is replaced by %s: cloud-init does nothing with this one", v.key, v.by)
	}
}

func (b *boot) values(key string) []*yaml.Node {
	var out []*yaml.Node
	for _, v := range b.config.values[key] {
		out = append(out, v.Node)
	}
	return out
}

// all is every command, file and script that a boot keeps.
func (b *boot) all() string {
	var text strings.Builder
	for _, key := range []string{"bootcmd", "runcmd", "write_files"} {
		text.WriteString(flat(b.values(key)...) + "\n")
	}
	for _, key := range b.order {
		text.WriteString(b.scripts[key].text + "\n")
	}
	for _, p := range b.early {
		text.WriteString(p.text + "\n")
	}
	return text.String()
}

// flat is the scalars of values, the words of a list in one line. Aliases are followed once.
func flat(nodes ...*yaml.Node) string {
	var b strings.Builder
	seen := map[*yaml.Node]bool{}
	var write func(n *yaml.Node)
	write = func(n *yaml.Node) {
		n = yaml11.Target(n)
		if seen[n] {
			return
		}
		seen[n] = true
		if n.Kind == yaml.ScalarNode {
			b.WriteString(n.Value + " ")
		}
		for _, c := range n.Content {
			write(c)
		}
		if n.Kind == yaml.SequenceNode {
			b.WriteString("\n")
		}
	}
	for _, n := range nodes {
		write(n)
	}
	return b.String()
}

// script is a shell script made of commands, with the lines that they come from.
type script struct {
	text  strings.Builder
	lines []int
	bad   bool
}

func (s *script) write(text string, line int, block bool) {
	for n, l := range slices.Collect(strings.Lines(text + "\n")) {
		s.text.WriteString(l)
		if block {
			s.lines = append(s.lines, line+1+n)
		} else {
			s.lines = append(s.lines, line)
		}
	}
}

// commands judges runcmd or bootcmd: cloud-init refuses the whole list for one item that is
// neither text nor a list.
func (b *boot) commands(key string, when phase) *script {
	values := b.config.values[key]
	if len(values) == 0 {
		return nil
	}
	v := values[0]
	items, ok := b.config.list(key)
	if !ok {
		v.add(Schema, true, v.Line, "%s is %s and no list, and cloud-init refuses it: begin each command with a dash", key, yaml11.Describe(v.Node))
		return nil
	}
	s := &script{}
	for i, item := range items {
		switch kind := yaml11.Kind(item.Node); kind {
		case "null":
		case "str":
			s.write(item.Value, item.Line, item.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0)
		case "list":
			s.write(b.words(key, item), item.Line, false)
		default:
			s.bad = true
			why := "put the command in quotes"
			if kind == "mapping" {
				why = "YAML reads \": \" as a mapping; put the command in quotes"
			}
			item.add(Schema, true, item.Line, "%s item %d is %s, and cloud-init refuses all of %s: %s", key, i+1, yaml11.Describe(item.Node), key, why)
		}
	}
	place := v.in("", func(n int) int { return s.lines[max(0, min(n, len(s.lines))-1)] })
	if len(s.lines) > 0 && !s.bad {
		place.script(s.text.String(), when)
	}
	return s
}

// shellWithText is a list that gives a shell a text to run, in which variables are replaced.
var shellWithText = lazyregexp.New(`sh' '-\w*c'`)

// words quotes a command that is a list, each word as Python writes it.
func (b *boot) words(key string, item value) string {
	var out []string
	for _, w := range item.Content {
		w = yaml11.Target(w)
		var text string
		switch kind := yaml11.Kind(w); kind {
		case "mapping", "list":
			item.add(Altered, true, w.Line, "%s: a %s within a command is one word with Python's brackets to the shell: write one list of words", key, kind)
			text = "[]"
		default:
			if text = yaml11.Word(w); text != w.Value {
				item.add(Altered, false, w.Line, "%s: the word %s reaches the command as %s: put it in quotes", key, w.Value, text)
			}
		}
		out = append(out, "'"+strings.ReplaceAll(text, "'", `'\''`)+"'")
	}
	line := strings.Join(out, " ")
	if joins(line) && !shellWithText.MatchString(line) {
		for _, w := range item.Content {
			if w = yaml11.Target(w); strings.Contains(w.Value, "$") {
				item.add(Altered, true, w.Line, "%s: %s reaches kubeadm as it stands here, because a list is run without a shell: write the command as one text", key, w.Value)
			}
		}
	}
	return line
}

// tooEarly finds joins that run before the file that they read is written: boothooks and bootcmd
// run before write_files, and all of them before files with defer.
func (b *boot) tooEarly(boot *script, files []file) {
	type early struct {
		what, text string
		*linter
		line int
	}
	var list []early
	for _, p := range b.early {
		list = append(list, early{"a boothook", p.text, p.linter, 1})
	}
	if v := b.config.values["bootcmd"]; boot != nil && len(v) > 0 {
		list = append(list, early{"bootcmd", boot.text.String(), v[0].linter, v[0].Line})
	}
	for _, e := range list {
		for _, f := range files {
			for _, form := range []string{"--config " + f.path, "--config=" + f.path, "'--config' '" + f.path + "'", "--config \"" + f.path} {
				if joins(e.text) && strings.Contains(e.text, form) {
					e.add(Altered, true, e.line, "%s joins with %s, which cloud-init writes later: join in runcmd", e.what, f.path)
					break
				}
			}
		}
	}
}

// users judges users and groups, which cloud-init makes after it has written files.
func (b *boot) users() {
	for _, key := range []string{"users", "groups"} {
		for _, v := range b.config.values[key] {
			entries := v.Content
			switch kind := yaml11.Kind(v.Node); {
			case v.Kind == yaml.MappingNode:
				entries = nil
				kept, _ := yaml11.Fields(v.Node)
				for _, f := range kept {
					if k := yaml11.Kind(f.Value); key == "users" && (k == "null" || k == "list" || k == "timestamp") {
						v.add(Schema, true, f.Value.Line, "users: %s is %s, and cloud-init makes no user: give it a mapping", f.Name, yaml11.Describe(f.Value))
					} else if key == "groups" && k != "str" && k != "list" && k != "mapping" {
						v.add(Schema, true, f.Value.Line, "groups: the members of %s are %s, and cloud-init makes neither groups nor users: give it a list", f.Name, yaml11.Describe(f.Value))
					}
				}
			case key == "users" && v.Kind == yaml.ScalarNode && kind != "str":
				v.add(Schema, false, v.Line, "users is %s: cloud-init makes none", yaml11.Describe(v.Node))
			case key == "groups" && v.Kind == yaml.ScalarNode && kind != "str":
				v.add(Schema, true, v.Line, "groups is %s, and cloud-init makes neither groups nor users: write a list", yaml11.Describe(v.Node))
			}
			for i, n := range entries {
				if why := badUser(key, yaml11.Target(n)); why != "" {
					v.add(Schema, true, n.Line, "%s entry %d %s: cloud-init makes neither groups nor users", key, i+1, why)
				}
			}
		}
	}
}

func badUser(key string, n *yaml.Node) string {
	kind := yaml11.Kind(n)
	switch {
	case kind == "str" || kind == "list" && key == "users":
		return ""
	case kind != "mapping":
		return "is " + yaml11.Describe(n)
	case key == "groups":
		kept, _ := yaml11.Fields(n)
		for _, f := range kept {
			if k := yaml11.Kind(f.Value); k != "str" && k != "list" {
				return fmt.Sprintf("has members that are %s", yaml11.Describe(f.Value))
			}
		}
		return ""
	}
	on := func(name string) bool {
		v := yaml11.Get(n, name)
		return v != nil && (len(v.Content) > 0 || v.Value != "" && v.Value != "0" && !slices.Contains([]string{"null", "bool"}, yaml11.Kind(v)) || yaml11.IsTrue(v))
	}
	for _, without := range []string{"no_create_home", "system"} {
		for _, with := range []string{"ssh_authorized_keys", "ssh_import_id", "ssh_redirect_user"} {
			if on(without) && on(with) {
				return fmt.Sprintf("has %s, which needs a home, beside %s", with, without)
			}
		}
	}
	if on("ssh_redirect_user") && (yaml11.Get(n, "ssh_authorized_keys") != nil || yaml11.Get(n, "ssh_import_id") != nil) {
		return "has ssh_redirect_user beside keys"
	}
	return ""
}
