// Command kubelettables renews userdata/lint/kubelet.txt from the sources of Kubernetes that the Go
// module proxy serves: the flags of each minor's kubelet, and the fields of kubeadm's JoinConfiguration.
// It reads the calls that register flags and the types with their JSON tags, and builds nothing. What
// it does not understand is an error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

func main() {
	table := flag.String("table", "", "the `file` to renew")
	flag.Parse()
	text, err := tables(context.Background())
	if err == nil {
		err = os.WriteFile(*table, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kubelettables: %v\n", err)
		os.Exit(1)
	}
}

// tables are the lines of the file.
func tables(ctx context.Context) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Flags of the kubelets of Kubernetes 1.%d.0 to 1.%d.0, with the first and the last minor that knows them, those of\n"+
		"# kubeadm join, and fields of its JoinConfiguration. Made by test/cmd/kubelettables (make kubelet-tables).\n", userdata.OldestMinor, userdata.NewestMinor)
	known := map[string][]int{} // by the beginning of a line
	for minor := userdata.OldestMinor; minor <= userdata.NewestMinor; minor++ {
		names, err := kubeletFlags(ctx, minor)
		if err != nil {
			return "", fmt.Errorf("the kubelet of 1.%d: %w", minor, err)
		}
		joins, err := joinFlags(ctx, minor)
		if err != nil {
			return "", fmt.Errorf("kubeadm join of 1.%d: %w", minor, err)
		}
		for name, kind := range names {
			joins = append(joins, "flag "+name+" "+kind)
		}
		for _, line := range joins {
			known[line] = append(known[line], minor)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		first, last := known[name][0], known[name][len(known[name])-1]
		if last-first+1 != len(known[name]) {
			return "", fmt.Errorf("%s came back: %v", name, known[name])
		}
		fmt.Fprintf(&b, "%s %d-%d\n", name, first, last)
	}
	for _, api := range []string{"v1beta3", "v1beta4"} {
		minor := userdata.NewestMinor
		for !userdata.APIServes(api, minor) {
			minor--
		}
		fields, err := joinFields(ctx, api, minor)
		if err != nil {
			return "", fmt.Errorf("kubeadm's %s of 1.%d: %w", api, minor, err)
		}
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&b, "field %s %s %s\n", api, path, fields[path])
		}
	}
	return b.String(), nil
}

// module is the directory of a module in Go's cache.
func module(ctx context.Context, name, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", name+"@"+version)
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || got.Error != "" || err != nil {
		return "", fmt.Errorf("fetch %s %s: %s %v", name, version, got.Error, err)
	}
	return got.Dir, nil
}

// source are the files of one directory for Linux, without tests.
func source(dir string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if base := filepath.Base(name); strings.HasSuffix(base, "_test.go") || strings.HasSuffix(base, "_windows.go") || strings.Contains(base, "_other") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no source", dir)
	}
	return files, nil
}

// kubeletFlags are the names that cmd/kubelet registers with the kinds of their values: its own, those of cAdvisor that it takes
// over, and those of component-base.
func kubeletFlags(ctx context.Context, minor int) (map[string]string, error) {
	kubernetes, err := module(ctx, "k8s.io/kubernetes", fmt.Sprintf("v1.%d.0", minor))
	if err != nil {
		return nil, err
	}
	base, err := module(ctx, "k8s.io/component-base", fmt.Sprintf("v0.%d.0", minor))
	if err != nil {
		return nil, err
	}
	names := map[string]string{"help": "bool"} // cmd/kubelet/app itself registers this one
	for _, dir := range []string{kubernetes + "/cmd/kubelet/app/options", kubernetes + "/pkg/kubelet/config", base + "/logs/api/v1", base + "/version/verflag"} {
		files, err := source(dir)
		if err != nil {
			return nil, err
		}
		constants := stringConstants(files)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if at := nameArgument(call); at >= 0 {
					if name, ok := stringOf(call.Args[at], constants); ok {
						names[strings.ReplaceAll(name, "_", "-")] = valueKind(call)
					} else if id, variable := call.Args[at].(*ast.Ident); !variable || !strings.Contains(strings.ToLower(id.Name), "name") {
						err = fmt.Errorf("a flag of %s has no constant name", dir)
					}
				}
				return true
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

var typedVar = regexp.MustCompile(`^(Bool|Int|Uint|Float|Duration)\d*VarP?$`)

// valueKind is the kind of a flag's value: bool, int, uint, float, duration, map (names with values), bools (names with true or
// false), text (anything else).
func valueKind(call *ast.CallExpr) string {
	if m := typedVar.FindStringSubmatch(nameOf(call.Fun)); m != nil {
		return strings.ToLower(m[1])
	}
	if v, ok := call.Args[0].(*ast.CallExpr); ok {
		switch nameOf(v.Fun) {
		case "NewMapStringBool":
			return "bools"
		case "NewMapStringString", "NewMapStringStringNoSplit":
			return "map"
		}
	}
	return "text"
}

var klogVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/klog/v2 (v\S+)$`)

// joinFlags are the flags of kubeadm join: whether they take a value, and whether they go beside --config.
func joinFlags(ctx context.Context, minor int) ([]string, error) {
	kubernetes, err := module(ctx, "k8s.io/kubernetes", fmt.Sprintf("v1.%d.0", minor))
	if err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(kubernetes + "/go.mod")
	version := klogVersion.FindSubmatch(mod)
	if err != nil || version == nil {
		return nil, fmt.Errorf("go.mod names no klog: %w", err)
	}
	klog, err := module(ctx, "k8s.io/klog/v2", string(version[1]))
	if err != nil {
		return nil, err
	}
	functions, constants := map[string]*ast.FuncDecl{}, map[string]string{}
	var logging []*ast.File
	for _, dir := range []string{"/cmd", "/cmd/options", "/cmd/util", "/cmd/phases/workflow", "/apis/kubeadm/validation", klog} {
		if dir != klog {
			dir = kubernetes + "/cmd/kubeadm/app" + dir
		}
		files, err := source(dir)
		if err != nil {
			return nil, err
		}
		if dir == klog {
			logging = files
			continue
		}
		maps.Copy(constants, stringConstants(files))
		for _, f := range files {
			for _, d := range f.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					functions[f.Name.Name] = f
				}
			}
		}
	}
	beside := map[string]bool{}
	ast.Inspect(functions["isAllowedFlag"], func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if text, ok := stringOf(e, constants); ok {
				beside[text] = true
			}
		}
		return true
	})
	kinds := map[string]string{"help": "switch", "h": "switch"} // cobra's
	var take func(n ast.Node)
	take = func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if at := nameArgument(call); at >= 0 {
				if name, ok := stringOf(call.Args[at], constants); ok {
					kinds[strings.ReplaceAll(name, "_", "-")] = "value"
					if strings.HasPrefix(nameOf(call.Fun), "Bool") {
						kinds[strings.ReplaceAll(name, "_", "-")] = "switch"
					}
				}
			} else if f := functions[nameOf(call.Fun)]; f != nil && strings.HasPrefix(f.Name.Name, "Add") {
				take(f)
			}
			return true
		})
	}
	for _, name := range []string{"addJoinConfigFlags", "addJoinOtherFlags", "AddKubeadmOtherFlags", "BindToCommand"} {
		if functions[name] == nil {
			return nil, fmt.Errorf("there is no function %s", name)
		}
		take(functions[name])
	}
	for _, f := range logging {
		take(f)
	}
	var out []string
	for name, kind := range kinds {
		where := "alone"
		if beside[name] || strings.HasPrefix(name, "skip-") || name == "help" || name == "h" {
			where = "beside"
		}
		out = append(out, fmt.Sprintf("join %s %s %s", name, kind, where))
	}
	return out, nil
}

// nameOf is the name of a function or method that is called.
func nameOf(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// nameArgument is the index of a flag's name among the arguments of a call that registers one, else -1.
func nameArgument(call *ast.CallExpr) int {
	name, at := nameOf(call.Fun), -1
	switch {
	case (strings.HasSuffix(name, "Var") || strings.HasSuffix(name, "VarP")) && len(call.Args) >= 3:
		at = 1
	case name == "Version" && len(call.Args) == 3:
		at = 0
	case name == "register", name == "registerDeprecated":
		at = 2
	}
	if at >= len(call.Args) {
		return -1
	}
	return at
}

func stringConstants(files []*ast.File) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == len(s.Names) {
				for i, v := range s.Values {
					if text, ok := stringOf(v, nil); ok {
						out[s.Names[i].Name] = text
					}
				}
			}
			return true
		})
	}
	return out
}

func stringOf(e ast.Expr, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident, *ast.SelectorExpr: // another package's constant by its name alone
		text, ok := constants[nameOf(e)]
		return text, ok
	}
	return "", false
}

// joinFields are the fields of a JoinConfiguration by their path, with what JSON they take.
func joinFields(ctx context.Context, api string, minor int) (map[string]string, error) {
	kubernetes, err := module(ctx, "k8s.io/kubernetes", fmt.Sprintf("v1.%d.0", minor))
	if err != nil {
		return nil, err
	}
	files := map[string]*ast.StructType{}
	for _, dir := range []string{api, "../bootstraptoken/v1"} {
		list, err := source(filepath.Join(kubernetes, "cmd/kubeadm/app/apis/kubeadm", dir))
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			ast.Inspect(f, func(n ast.Node) bool {
				if t, ok := n.(*ast.TypeSpec); ok {
					if s, ok := t.Type.(*ast.StructType); ok {
						files[t.Name.Name] = s
					}
				}
				return true
			})
		}
	}
	out := map[string]string{}
	return out, fieldsOf(files, "JoinConfiguration", "", out)
}

func fieldsOf(types map[string]*ast.StructType, name, path string, out map[string]string) error {
	s := types[name]
	if s == nil {
		return fmt.Errorf("there is no type %s", name)
	}
	for _, f := range s.Fields.List {
		key, options, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		if options == "inline" && key == "" {
			if id, ok := f.Type.(*ast.Ident); ok {
				if err := fieldsOf(types, id.Name, path, out); err != nil {
					return err
				}
			} else { // metav1.TypeMeta
				out["apiVersion"], out["kind"] = "string", "string"
			}
			continue
		}
		if err := fieldOf(types, f.Type, path+key, out); err != nil {
			return err
		}
	}
	return nil
}

func fieldOf(types map[string]*ast.StructType, t ast.Expr, path string, out map[string]string) error {
	switch t := t.(type) {
	case *ast.StarExpr:
		return fieldOf(types, t.X, path, out)
	case *ast.ArrayType:
		out[path] = "list"
		return fieldOf(types, t.Elt, path+"[]", out)
	case *ast.MapType:
		out[path] = "map"
		return fieldOf(types, t.Value, path+"{}", out)
	case *ast.SelectorExpr: // another module's: image pull policies are strings
		switch t.Sel.Name {
		case "Duration":
			out[path] = "duration"
		case "PullPolicy":
			out[path] = "string"
		case "Taint":
			out[path] = "any"
		default:
			return fmt.Errorf("%s has the type %s", path, t.Sel.Name)
		}
	case *ast.Ident:
		switch t.Name {
		case "string":
			out[path] = "string"
		case "bool":
			out[path] = "boolean"
		case "int32":
			out[path] = "integer"
		default:
			out[path] = "object"
			return fieldsOf(types, t.Name, path+".", out)
		}
	default:
		return fmt.Errorf("%s has a type that is not known", path)
	}
	return nil
}
