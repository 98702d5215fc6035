package quickstart

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"sigs.k8s.io/yaml"
)

// content is a block whose expressions have values.
type content struct {
	args   map[string]cty.Value
	blocks map[string][]content
}

// maker makes a resource, or reads one for an address that begins with "data.", and
// returns its attributes.
type maker func(address string, c content) (map[string]cty.Value, error)

// run is the evaluation of a module.
type run struct {
	m      *module
	make   maker
	values map[string]cty.Value // by address: var.x, local.x, TYPE.NAME, data.TYPE.NAME
}

// evaluate gives a module's variables values and makes its resources, each after those
// that it names. It returns the outputs.
func (m *module) evaluate(given map[string]cty.Value, make maker) (map[string]cty.Value, error) {
	r := &run{m: m, make: make, values: map[string]cty.Value{}}
	if err := r.setVariables(given); err != nil {
		return nil, err
	}
	waiting := map[string][]reference{}
	for name, e := range m.locals {
		waiting["local."+name] = named(e, nil)
	}
	for address, b := range m.resources {
		waiting[address] = references(b.Body, nil)
	}
	for len(waiting) > 0 {
		before := len(waiting)
		for _, address := range sorted(waiting) {
			ready := !slices.ContainsFunc(waiting[address], func(n reference) bool { return r.values[n.address] == cty.NilVal })
			if !ready {
				continue
			}
			if err := r.one(address); err != nil {
				return nil, fmt.Errorf("%s: %w", address, err)
			}
			delete(waiting, address)
		}
		if len(waiting) == before {
			return nil, fmt.Errorf("a circle among %v", sorted(waiting))
		}
	}
	outputs := map[string]cty.Value{}
	for name, b := range m.outputs {
		v, diags := b.Body.Attributes["value"].Expr.Value(r.context())
		if diags.HasErrors() {
			return nil, diags
		}
		outputs[name] = v
	}
	return outputs, nil
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (r *run) setVariables(given map[string]cty.Value) error {
	for name := range given {
		if r.m.variables[name] == nil {
			return fmt.Errorf("there is no variable %s", name)
		}
	}
	for name, b := range r.m.variables {
		typ, defaults, diags := typeexpr.TypeConstraintWithDefaults(b.Body.Attributes["type"].Expr)
		if diags.HasErrors() {
			return diags
		}
		v, ok := given[name]
		if a := b.Body.Attributes["default"]; !ok && a != nil {
			if v, diags = a.Expr.Value(nil); diags.HasErrors() {
				return diags
			}
			ok = true
		}
		if !ok {
			return fmt.Errorf("variable %s has no value", name)
		}
		if defaults != nil && !v.IsNull() {
			v = defaults.Apply(v)
		}
		v, err := convert.Convert(v, typ)
		if err != nil {
			return fmt.Errorf("variable %s: %w", name, err)
		}
		r.values["var."+name] = v
	}
	return r.validate()
}

func (r *run) validate() error {
	for name, b := range r.m.variables {
		for _, rule := range b.Body.Blocks {
			ok, diags := rule.Body.Attributes["condition"].Expr.Value(r.context())
			if diags.HasErrors() || ok.False() {
				return fmt.Errorf("variable %s: invalid (%v)", name, diags)
			}
		}
	}
	return nil
}

// one evaluates a local, or makes a resource as often as count and for_each say.
func (r *run) one(address string) error {
	if name, ok := strings.CutPrefix(address, "local."); ok {
		v, diags := r.m.locals[name].Value(r.context())
		if diags.HasErrors() {
			return diags
		}
		r.values[address] = v
		return nil
	}
	b := r.m.resources[address]
	s, _ := schemaOf(address)
	instance := func(ctx *hcl.EvalContext) (cty.Value, error) {
		if err := preconditions(b.Body, ctx); err != nil {
			return cty.NilVal, err
		}
		c, err := evaluateBlock(b.Body, s, ctx)
		if err != nil {
			return cty.NilVal, err
		}
		attributes, err := r.make(address, c)
		if err != nil {
			return cty.NilVal, err
		}
		for name, v := range c.args {
			if _, set := attributes[name]; !set {
				attributes[name] = v
			}
		}
		return cty.ObjectVal(attributes), nil
	}
	count, each := b.Body.Attributes["count"], b.Body.Attributes["for_each"]
	var err error
	switch {
	case count != nil:
		r.values[address], err = r.counted(count.Expr, instance)
	case each != nil:
		r.values[address], err = r.forEach(each.Expr, instance)
	default:
		r.values[address], err = instance(r.context())
	}
	return err
}

// preconditions of a resource's lifecycle hold before it is made.
func preconditions(body *hclsyntax.Body, ctx *hcl.EvalContext) error {
	for _, b := range body.Blocks {
		if b.Type != "lifecycle" {
			continue
		}
		for _, rule := range b.Body.Blocks {
			holds, diags := rule.Body.Attributes["condition"].Expr.Value(ctx)
			if diags.HasErrors() {
				return diags
			}
			if holds.True() {
				continue
			}
			message, diags := rule.Body.Attributes["error_message"].Expr.Value(ctx)
			if diags.HasErrors() {
				return diags
			}
			return errors.New(message.AsString())
		}
	}
	return nil
}

func (r *run) counted(e hclsyntax.Expression, instance func(*hcl.EvalContext) (cty.Value, error)) (cty.Value, error) {
	n, diags := e.Value(r.context())
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	var list []cty.Value
	times, _ := n.AsBigFloat().Int64()
	for i := range times {
		ctx := r.context().NewChild()
		ctx.Variables = map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(i)})}
		v, err := instance(ctx)
		if err != nil {
			return cty.NilVal, err
		}
		list = append(list, v)
	}
	return cty.TupleVal(list), nil
}

func (r *run) forEach(e hclsyntax.Expression, instance func(*hcl.EvalContext) (cty.Value, error)) (cty.Value, error) {
	all, diags := e.Value(r.context())
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	if t := all.Type(); !t.IsMapType() && !t.IsObjectType() && !t.IsSetType() {
		return cty.NilVal, errors.New("for_each takes a map or a set of strings")
	}
	out := map[string]cty.Value{}
	for it := all.ElementIterator(); it.Next(); {
		k, v := it.Element()
		ctx := r.context().NewChild()
		ctx.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": k, "value": v})}
		made, err := instance(ctx)
		if err != nil {
			return cty.NilVal, err
		}
		out[k.AsString()] = made
	}
	return cty.ObjectVal(out), nil
}

// evaluateBlock evaluates the arguments to the types of the schema, and dynamic blocks to
// as many as they make.
func evaluateBlock(body *hclsyntax.Body, s schema, ctx *hcl.EvalContext) (content, error) {
	types := map[string]cty.Type{"s": cty.String, "n": cty.Number, "b": cty.Bool, "l": cty.List(cty.String), "m": cty.Map(cty.String)}
	c := content{map[string]cty.Value{}, map[string][]content{}}
	for name, a := range body.Attributes {
		if s.kind(name) == "" {
			continue // count, for_each
		}
		v, diags := a.Expr.Value(ctx)
		if diags.HasErrors() {
			return c, diags
		}
		v, err := convert.Convert(v, types[s.kind(name)])
		if err != nil {
			return c, fmt.Errorf("%s: %w", a.SrcRange, err)
		}
		c.args[name] = v
	}
	for _, b := range body.Blocks {
		if b.Type == "lifecycle" {
			continue
		}
		if b.Type != "dynamic" {
			inner, err := evaluateBlock(b.Body, s.blocks[b.Type], ctx)
			if err != nil {
				return c, err
			}
			c.blocks[b.Type] = append(c.blocks[b.Type], inner)
			continue
		}
		name := b.Labels[0]
		all, diags := b.Body.Attributes["for_each"].Expr.Value(ctx)
		if diags.HasErrors() {
			return c, diags
		}
		for it := all.ElementIterator(); it.Next(); {
			k, v := it.Element()
			within := ctx.NewChild()
			within.Variables = map[string]cty.Value{name: cty.ObjectVal(map[string]cty.Value{"key": k, "value": v})}
			inner, err := evaluateBlock(b.Body.Blocks[0].Body, s.blocks[name], within)
			if err != nil {
				return c, err
			}
			c.blocks[name] = append(c.blocks[name], inner)
		}
	}
	return c, nil
}

// context is what expressions see: all that has a value so far.
func (r *run) context() *hcl.EvalContext {
	tree := map[string]any{"path": map[string]any{"module": cty.StringVal(r.m.dir)}}
	for address, v := range r.values {
		at := tree
		parts := strings.Split(address, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := at[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[p] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = v
	}
	variables := map[string]cty.Value{}
	for name, v := range tree {
		variables[name] = object(v)
	}
	return &hcl.EvalContext{Variables: variables, Functions: functions}
}

func object(v any) cty.Value {
	if leaf, ok := v.(cty.Value); ok {
		return leaf
	}
	out := map[string]cty.Value{}
	for name, inner := range v.(map[string]any) {
		out[name] = object(inner)
	}
	return cty.ObjectVal(out)
}

// functions are those of Terraform's that the modules use.
var functions = map[string]function.Function{
	"can": tryfunc.CanFunc, "coalesce": stdlib.CoalesceFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc, "values": stdlib.ValuesFunc,
	"jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
	"length": stdlib.LengthFunc, "merge": stdlib.MergeFunc, "regex": stdlib.RegexFunc, "sort": stdlib.SortFunc,
	"nonsensitive": function.New(&function.Spec{Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0], nil }}),
	"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	"file":  text(func(name string) (string, error) { raw, err := os.ReadFile(name); return string(raw), err }),
	"filebase64": text(func(name string) (string, error) {
		raw, err := os.ReadFile(name)
		return base64.StdEncoding.EncodeToString(raw), err
	}),
	"base64encode": text(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }),
	"yamlencode": function.New(&function.Spec{Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true}}, Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			raw, err := stdlib.JSONEncode(args[0])
			if err != nil {
				return cty.NilVal, err
			}
			out, err := yaml.JSONToYAML([]byte(raw.AsString()))
			return cty.StringVal(string(out)), err
		}}),
	"templatefile": function.New(&function.Spec{Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			raw, err := os.ReadFile(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			e, diags := hclsyntax.ParseTemplate(raw, args[0].AsString(), hcl.InitialPos)
			if diags.HasErrors() {
				return cty.NilVal, diags
			}
			v, diags := e.Value(&hcl.EvalContext{Variables: args[1].AsValueMap()})
			if diags.HasErrors() {
				return cty.NilVal, diags
			}
			return v, nil
		}}),
}

func text(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{Params: []function.Parameter{{Name: "text", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			out, err := f(args[0].AsString())
			return cty.StringVal(out), err
		}})
}
