package lint

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/jinja"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/yaml11"
)

// defaultUsers are made by cloud-init itself, from its cloud.cfg.
var defaultUsers = strings.Fields("debian ubuntu ec2-user rocky cloud-user almalinux centos fedora")

// accounts are the users and groups that user data makes, with what makes them.
type accounts struct {
	early map[string]bool   // before files are written
	later map[string]string // after that
}

// readAccounts reads all of the user data once.
func (b *boot) readAccounts() accounts {
	a := accounts{early: map[string]bool{}, later: map[string]string{}}
	for _, v := range b.values("packages") {
		for _, p := range names(v) {
			name, _, _ := strings.Cut(p, "-")
			a.later[p], a.later[name] = "it installs the package "+p, "it installs the package "+p
		}
	}
	for _, name := range made(b.all()) {
		a.later[name] = "that command makes it"
	}
	for _, name := range defaultUsers {
		a.later[name] = "it makes its default user"
	}
	listed := names(slices.Concat(b.values("groups"), b.values("user"))...)
	for _, v := range b.config.values["users"] {
		if v.Kind == yaml.ScalarNode {
			listed = append(listed, names(v.Node)...)
		}
		for _, n := range v.Content {
			if n = yaml11.Target(n); n.Kind != yaml.MappingNode {
				listed = append(listed, names(n)...)
				continue
			}
			for _, key := range []string{"name", "groups", "primary_group"} {
				if own := yaml11.Get(n, key); own != nil {
					listed = append(listed, names(own)...)
				}
			}
		}
	}
	for _, name := range listed {
		a.later[name] = "it makes the user or group"
	}
	for _, name := range made(flat(b.values("bootcmd")...)) {
		a.early[name] = true
	}
	for _, p := range b.early {
		for _, name := range made(p.text) {
			a.early[name] = true
		}
	}
	return a
}

// names are the words of values, in lists or divided by commas.
func names(nodes ...*yaml.Node) []string {
	return strings.FieldsFunc(flat(nodes...), func(r rune) bool { return strings.ContainsRune(" ,\n", r) })
}

// made are the words of commands that make an account, the name among them.
func made(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|\"'", r) })
		for i, w := range words {
			if slices.Contains([]string{"useradd", "adduser", "groupadd", "addgroup"}, path.Base(w)) {
				out = append(out, words[i+1:]...)
				break
			}
		}
	}
	return out
}

// owner finds accounts that are made after the file is to be theirs.
func (a accounts) owner(item value, f file) {
	n := yaml11.Get(item.Node, "owner")
	if n == nil || f.deferred || yaml11.Kind(n) == "null" {
		return
	}
	if yaml11.Kind(n) != "str" {
		item.add(Schema, true, n.Line, "%s: owner is %s, and cloud-init stops there: write the name, root:root", f.path, yaml11.Describe(n))
		return
	}
	user, group, ok := strings.Cut(n.Value, ":")
	if u, g, dot := strings.Cut(n.Value, "."); dot && !ok {
		item.add(Schema, true, n.Line, "%s: owner %s is one name to cloud-init, which stops at an owner that does not exist: write %s:%s", f.path, n.Value, u, g)
		return
	}
	for _, name := range []string{strings.TrimSpace(user), strings.TrimSpace(group)} {
		by := a.later[name]
		switch {
		case name == "" || name == "-1" || strings.EqualFold(name, "none") || name == "root" || strings.Contains(name, jinja.Unknown) || a.early[name]:
		case strings.Trim(name, "0123456789") == "":
			item.add(Schema, true, n.Line, "%s: owner %s is a number, and cloud-init looks up names: it stops there, and later files are missing; write root:root", f.path, name)
			return
		case by != "":
			item.add(Schema, true, n.Line, "%s: owner %s does not exist yet: cloud-init writes files before %s; it stops there, and later files are missing: give it defer: true", f.path, name, by)
			return
		default:
			item.add(Altered, false, n.Line, "%s: the image must have %s: cloud-init stops at an owner that does not exist, and later files are missing", f.path, name)
		}
	}
}
