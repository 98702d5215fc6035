package capi

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

//go:embed crds.yaml
var coreCRDs []byte

// Group is Cluster API's own API group.
const Group = "cluster.x-k8s.io"

// InfraGroup is the API group of the emulated infrastructure provider.
const InfraGroup = "infrastructure.cluster.x-k8s.io"

// infraKinds are those of the emulated infrastructure provider: the template by the
// contract of opt-in autoscaling from zero, the others for Cluster API's own controllers.
var infraKinds = []string{"EmulatedMachineTemplate", "EmulatedMachine", "EmulatedCluster", "EmulatedControlPlane"}

const infraCRD = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: PLURAL.infrastructure.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta1: v1beta1, cluster.x-k8s.io/v1beta2: v1beta2}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: KIND, listKind: KINDList, plural: PLURAL, singular: SINGULAR}
  scope: Namespaced
  versions:
  - &version
    name: v1beta2
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - <<: *version
    name: v1beta1
    storage: false
`

// infraCRDs are the CustomResourceDefinitions of infraKinds.
func infraCRDs() []byte {
	var out bytes.Buffer
	for _, kind := range infraKinds {
		singular := strings.ToLower(kind)
		out.WriteString(strings.NewReplacer("KIND", kind, "PLURAL", singular+"s", "SINGULAR", singular).Replace(infraCRD))
	}
	return out.Bytes()
}

// Install installs the CustomResourceDefinitions and waits until they are served. Cluster
// API's own are changed to another API group when group is not Group, and to one
// version when only is not empty: a management cluster as it was before v1beta2.
func Install(ctx context.Context, cfg *rest.Config, group, only string) error {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definitions, err := decode(slices.Concat(infraCRDs(), []byte("---\n"), coreCRDs))
	if err != nil {
		return err
	}
	var names []string
	for _, crd := range definitions {
		if strings.HasSuffix(crd.GetName(), "."+Group) && !strings.HasSuffix(crd.GetName(), "."+InfraGroup) {
			adapt(crd, group, only)
		}
		if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install %s: %w", crd.GetName(), err)
		}
		names = append(names, crd.GetName())
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, name := range names {
		for {
			crd, err := crds.Get(ctx, name, metav1.GetOptions{})
			if err == nil && established(crd) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for %s: %w", name, ctx.Err())
			case <-tick.C:
			}
		}
	}
	return nil
}

// Definitions are Cluster API's own CustomResourceDefinitions that Install installs, by name.
func Definitions() (map[string]*unstructured.Unstructured, error) {
	list, err := decode(coreCRDs)
	out := map[string]*unstructured.Unstructured{}
	for _, crd := range list {
		out[crd.GetName()] = crd
	}
	return out, err
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	docs := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer docs.Close()
	var out []*unstructured.Unstructured
	buf := make([]byte, 1<<20)
	for {
		n, err := docs.Read(buf)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the CRDs: %w", err)
		}
		var object map[string]any
		if err := yaml.Unmarshal(buf[:n], &object); err != nil {
			return nil, fmt.Errorf("read the CRDs: %w", err)
		}
		if object != nil {
			out = append(out, &unstructured.Unstructured{Object: object})
		}
	}
}

func established(crd *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

func adapt(crd *unstructured.Unstructured, group, only string) {
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	crd.SetName(plural + "." + group)
	set(crd.Object, group, "spec", "group")
	if group != Group {
		// Names of *.k8s.io are protected; a test's own group says that it knows.
		crd.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, a test"})
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var kept []any
	for _, v := range versions {
		v := v.(map[string]any)
		if only == "" || v["name"] == only {
			if only != "" {
				v["storage"] = true
			}
			kept = append(kept, v)
		}
	}
	set(crd.Object, kept, "spec", "versions")
}

func set(object map[string]any, value any, fields ...string) {
	if err := unstructured.SetNestedField(object, value, fields...); err != nil {
		panic(err)
	}
}
