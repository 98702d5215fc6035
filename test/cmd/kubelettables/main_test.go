package main

import (
	"fmt"
	"go/ast"
	"os"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestTable: the table that the product holds is what the sources of Kubernetes say.
func TestTable(t *testing.T) {
	want, err := tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../../userdata/lint/kubelet.txt")
	if err != nil || string(have) != want {
		t.Errorf("userdata/lint/kubelet.txt is not what the sources say (%v): make kubelet-tables", err)
	}
}

// TestReservedLabels: of all labels that Kubernetes itself has a name for, the ones with which a kubelet
// does not start are those that userdata.ReservedLabel names, in each minor.
func TestReservedLabels(t *testing.T) {
	for minor := userdata.OldestMinor; minor <= userdata.NewestMinor; minor++ {
		constants, allowed := map[string]string{}, map[string]bool{}
		for _, from := range []string{"k8s.io/api/core/v1", "k8s.io/kubelet/pkg/apis"} {
			name := strings.Join(strings.Split(from, "/")[:2], "/")
			dir, err := module(t.Context(), name, fmt.Sprintf("v0.%d.0", minor))
			if err != nil {
				t.Fatal(err)
			}
			files, err := source(dir + strings.TrimPrefix(from, name))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range stringConstants(files) {
				constants[name] = value
			}
			for _, f := range files {
				ast.Inspect(f, func(n ast.Node) bool {
					s, ok := n.(*ast.ValueSpec)
					if !ok || len(s.Values) == 0 || !strings.HasPrefix(s.Names[0].Name, "kubeletLabel") {
						return true
					}
					for _, arg := range s.Values[0].(*ast.CallExpr).Args {
						if sel, ok := arg.(*ast.SelectorExpr); ok {
							arg = sel.Sel
						}
						value, ok := stringOf(arg, constants)
						if !ok {
							t.Errorf("1.%d: %s has an item that is not known", minor, s.Names[0].Name)
						}
						allowed[value] = true
					}
					return true
				})
			}
		}
		if len(allowed) < 13 {
			t.Fatalf("1.%d allows %v", minor, allowed)
		}
		labels := []string{"node-role.kubernetes.io/worker", "a.kubernetes.io/b", "k8s.io/b", "node.kubernetes.io/b", "a.kubelet.kubernetes.io/b", "kubernetes.io.example/b", "example/b", "b"}
		for name, value := range constants {
			if strings.Contains(name, "Label") && strings.Count(value, "/") == 1 {
				labels = append(labels, value)
			}
		}
		for _, label := range labels {
			domain, _, ok := strings.Cut(label, "/")
			ours := ok && (domain == "kubernetes.io" || domain == "k8s.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io"))
			want := ours && !allowed[label]
			for namespace := range allowed {
				if domain == namespace || strings.HasSuffix(domain, "."+namespace) {
					want = false
				}
			}
			if got := userdata.ReservedLabel(label); got != want {
				t.Errorf("1.%d: %s is reserved: %v, want %v", minor, label, got, want)
			}
		}
		t.Logf("1.%d: %d labels", minor, len(labels))
	}
}
