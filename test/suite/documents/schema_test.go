package documents

import (
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// TestSchemaOfGroups: an editor that has the schema finds nothing wrong in the example, and
// marks the mistakes that a schema can know.
func TestSchemaOfGroups(t *testing.T) {
	file, err := os.Open("../../../docs/groups.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("groups.schema.json", text); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("groups.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	judge := func(text string) error {
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc)
	}
	example, err := os.ReadFile("../../../units/groups.yaml.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{
		string(example), "", "groups:\nheadroom:\n", "groups: {w: }",
		"groups: {w: {pause: 2026-12-24T18:00:00Z, template: {capacity: {cpu: 4, memory: 16Gi, nvidia.com/gpu: 1}}}}",
		"nova: {groups: [{name: w, flavor: [a, b], image: i, networks: [net, {network: m, portSecurity: false}], max: 3, userdata: /x}]}",
		"nova: {groups: [{name: w, flavors: [a, {flavor: b, name: large, min: 1, max: 2, price: 0.2}], image: i, networks: [net], max: 3, userdata: /x}]}",
		"externalgrpc: {instances: [{instance: 'rack:///7', node: rack-7, zone: cellar}]}",
	} {
		if err := judge(good); err != nil {
			t.Errorf("%s\n%v", good, err)
		}
	}
	for _, bad := range []string{
		"group: {}", "groups: [a]", "groups: {w: {prize: 1}}", "groups: {w: {price: cheap}}", "groups: {w: {price: -1}}", "groups: {w: {max: 9}}", "groups: {w: {pause: tomorrow}}",
		"groups: {w: {options: {scaleDownUtilizationThreshold: 50}}}", "groups: {w: {options: {maxNodeStartupTime: 10}}}", "groups: {w: {template: {taints: [gpu]}}}",
		"groups: {w: {template: {capacity: {mem: 1Gi}}}}", "groups: {w: {template: {capacity: {memory: lots}}}}", "groups: {w: {template: {labels: {'a b': c}}}}",
		"headroom: {}", "headroom: [{cpu: 1}]", "headroom: [{name: a, pods: {cpu: 1}}]", "headroom: [{name: a, pods: {count: 1, gpu: 1}}]", "headroom: [{name: a, nodes: {count: 1}}]",
		"headroom: [{name: a, schedule: [{hours: 8-18}]}]", "headroom: [{name: a, tolerations: [{operator: In}]}]",
		"machines: {a: 1}", "machines: [{node: a}]", "machines: [{id: a, node: b}]", "externalgrpc: {instances: [{id: a, nodeName: b}]}",
		"nova: {groups: [{name: w, flavor: a, flavors: [a, b], image: i, networks: [n], max: 3, userdata: /x}]}", "nova: {groups: [{name: w, flavors: [], image: i, networks: [n], max: 3, userdata: /x}]}",
		"nova: {groups: [{name: w, flavors: [{name: a}], image: i, networks: [n], max: 3, userdata: /x}]}",
		"nova: {groups: [{name: w}]}", "nova: {groups: [{name: w, flavor: a, image: i, networks: [n], max: 0, userdata: /x}]}", "nova: {clouds: [{region: a}]}",
	} {
		if judge(bad) == nil {
			t.Errorf("the schema finds nothing wrong in %s", bad)
		}
	}
}
