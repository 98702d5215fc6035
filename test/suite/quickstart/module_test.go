package quickstart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// module is a Terraform module as its files say it.
type module struct {
	dir       string
	variables map[string]*hclsyntax.Block
	locals    map[string]hclsyntax.Expression
	resources map[string]*hclsyntax.Block // by address: TYPE.NAME, data.TYPE.NAME
	outputs   map[string]*hclsyntax.Block
	providers []string // of required_providers
}

// load reads all files of a module with HCL's own parser.
func load(dir string) (*module, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.tf"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s: no files (%v)", dir, err)
	}
	m := &module{dir: dir, variables: map[string]*hclsyntax.Block{}, locals: map[string]hclsyntax.Expression{},
		resources: map[string]*hclsyntax.Block{}, outputs: map[string]*hclsyntax.Block{}}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, diags := hclsyntax.ParseConfig(text, filepath.Base(name), hcl.InitialPos)
		if diags.HasErrors() {
			return nil, diags
		}
		if err := m.add(file.Body.(*hclsyntax.Body)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *module) add(body *hclsyntax.Body) error {
	if len(body.Attributes) > 0 {
		return fmt.Errorf("%s: an argument outside of blocks", body.SrcRange)
	}
	for _, b := range body.Blocks {
		wants := map[string]int{"variable": 1, "output": 1, "resource": 2, "data": 2, "locals": 0, "terraform": 0, "provider": 1}
		if n, known := wants[b.Type]; !known || n != len(b.Labels) {
			return fmt.Errorf("%s: block %s %v", b.TypeRange, b.Type, b.Labels)
		}
		address := strings.Join(b.Labels, ".")
		if b.Type == "data" {
			address = "data." + address
		}
		into := map[string]map[string]*hclsyntax.Block{"variable": m.variables, "output": m.outputs, "resource": m.resources, "data": m.resources}[b.Type]
		if into != nil {
			if into[address] != nil {
				return fmt.Errorf("%s: %s %s is there twice", b.TypeRange, b.Type, address)
			}
			into[address] = b
		}
		switch b.Type {
		case "locals":
			for name, a := range b.Body.Attributes {
				if m.locals[name] != nil {
					return fmt.Errorf("%s: local.%s is there twice", a.SrcRange, name)
				}
				m.locals[name] = a.Expr
			}
		case "terraform":
			for _, inner := range b.Body.Blocks {
				if inner.Type == "required_providers" {
					m.providers = slices.Sorted(maps.Keys(inner.Body.Attributes))
				}
			}
		}
	}
	return nil
}

// reference is a name in an expression.
type reference struct {
	address   string // var.x, local.x, TYPE.NAME, data.TYPE.NAME, or each, count, path, self
	attribute string // of the resource, "" for all of it
	at        hcl.Range
}

// resolve reads a traversal; iterators are the names that dynamic blocks around it bind.
func resolve(t hcl.Traversal, iterators []string) (reference, bool) {
	root := t.RootName()
	if slices.Contains(iterators, root) || slices.Contains([]string{"each", "count", "path", "self"}, root) {
		return reference{}, false
	}
	n := 2
	if root == "data" {
		n = 3
	}
	parts := []string{root}
	rest := t[1:]
	for len(parts) < n && len(rest) > 0 {
		a, ok := rest[0].(hcl.TraverseAttr)
		if !ok {
			break
		}
		parts, rest = append(parts, a.Name), rest[1:]
	}
	r := reference{address: strings.Join(parts, "."), at: t.SourceRange()}
	for _, step := range rest {
		if a, ok := step.(hcl.TraverseAttr); ok {
			r.attribute = a.Name
			break
		}
	}
	return r, true
}

// references are the names in a body, inner blocks and the rules of dynamic blocks included.
func references(body *hclsyntax.Body, iterators []string) []reference {
	var out []reference
	for _, a := range body.Attributes {
		if a.Name == "ignore_changes" {
			continue // names of arguments
		}
		out = append(out, named(a.Expr, iterators)...)
	}
	for _, b := range body.Blocks {
		within := iterators
		if b.Type == "dynamic" {
			within = append(slices.Clone(iterators), b.Labels[0])
		}
		out = append(out, references(b.Body, within)...)
	}
	return out
}

func named(e hclsyntax.Expression, iterators []string) []reference {
	var out []reference
	for _, t := range hclsyntax.Variables(e) {
		if r, ok := resolve(t, iterators); ok {
			out = append(out, r)
		}
	}
	return out
}

// check returns everything that is wrong with the module as it is written: names that lead
// nowhere, arguments that the provider does not know or that it misses, and variables and
// locals that nothing uses.
func (m *module) check() []string {
	var wrong []string
	used := map[string]bool{}
	look := func(list []reference) {
		for _, r := range list {
			used[r.address] = true
			if problem := m.leadsNowhere(r); problem != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %s", r.at, problem))
			}
		}
	}
	for _, b := range m.variables {
		look(references(b.Body, []string{"string", "number", "bool"})) // types, and var itself in validations
		if b.Body.Attributes["type"] == nil || b.Body.Attributes["description"] == nil {
			wrong = append(wrong, fmt.Sprintf("%s: the variable has no type or no description", b.TypeRange))
		}
	}
	clear(used)
	for _, e := range m.locals {
		look(named(e, nil))
	}
	for address, b := range m.resources {
		look(references(b.Body, nil))
		typ := strings.Split(strings.TrimPrefix(address, "data."), ".")[0]
		if prefix, _, _ := strings.Cut(typ, "_"); !slices.Contains(m.providers, prefix) && prefix != "terraform" {
			wrong = append(wrong, fmt.Sprintf("%s: %s is of a provider that is not required", b.TypeRange, typ))
		}
		s, known := schemaOf(address)
		if !known {
			wrong = append(wrong, fmt.Sprintf("%s: the table of schemas has no %s", b.TypeRange, address))
			continue
		}
		wrong = append(wrong, s.check(b.Body, b.DefRange(), true)...)
	}
	for _, b := range m.outputs {
		look(references(b.Body, nil))
	}
	for name := range m.variables {
		if !used["var."+name] {
			wrong = append(wrong, "nothing uses var."+name)
		}
	}
	for name := range m.locals {
		if !used["local."+name] {
			wrong = append(wrong, "nothing uses local."+name)
		}
	}
	slices.Sort(wrong)
	return wrong
}

func (m *module) leadsNowhere(r reference) string {
	kind, name, _ := strings.Cut(r.address, ".")
	switch {
	case kind == "var" && m.variables[name] != nil, kind == "local" && m.locals[name] != nil:
		return ""
	case kind != "var" && kind != "local" && m.resources[r.address] != nil:
		if s, known := schemaOf(r.address); known && r.attribute != "" && !s.has(r.attribute) {
			return r.address + " has no attribute " + r.attribute
		}
		return ""
	}
	return r.address + " is not declared"
}
