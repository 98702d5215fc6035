package nova

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// page is docs/providers/nova.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/providers/nova.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestThePageNamesEveryField: the section that the page shows is good, and it shows every
// field that there is.
func TestThePageNamesEveryField(t *testing.T) {
	_, rest, _ := strings.Cut(page(t), "```yaml\nnova:\n")
	block, _, _ := strings.Cut(rest, "```")
	raw, err := yaml.YAMLToJSONStrict([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := section.Parse(raw); err != nil {
		t.Error(err)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[section.Section](), reflect.TypeFor[section.Cloud](), reflect.TypeFor[section.Group](), reflect.TypeFor[section.Choice](), reflect.TypeFor[section.Network](), reflect.TypeFor[section.Volume]()} {
		for i := range typ.NumField() {
			if name := typ.Field(i).Tag.Get("json"); !regexp.MustCompile(`\b` + name + `:`).MatchString(block) {
				t.Errorf("%s.%s is not shown", typ.Name(), name)
			}
		}
	}
}

// TestThePageMapsEachFieldOfConfYml: the sample of seed 002's program (bin/conf.yml-sample and the
// fields of its ConfigYaml) is mapped whole, and the section that the page makes of it is good.
func TestThePageMapsEachFieldOfConfYml(t *testing.T) {
	_, rest, _ := strings.Cut(page(t), "| conf.yml | here |")
	table, rest, _ := strings.Cut(rest, "\n\n")
	for name := range strings.FieldsSeq("CloudType AuthOptions.IdentityEndpoint AuthOptions.Username AuthOptions.Password AuthOptions.TenantID AuthOptions.DomainName " +
		"AuthOptions.ProjectName AuthOptions.ClientSecret AuthOptions.ClientId AuthOptions.AWSRegion AuthOptions.AuthFile Network.SecurityGroupName Network.NetworkUUID " +
		"WorkerImageName CoolDownTime MinNodeCount MaxNodeCount OpenStackFlavours.DefaultFlavour OpenStackFlavours.Flavours[].Name OpenStackFlavours.Flavours[].VCPU " +
		"OpenStackFlavours.Flavours[].Memory PassConfigToPlugin") {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + regexp.QuoteMeta(name) + `\b`).MatchString(table) {
			t.Errorf("%s has no line", name)
		}
	}
	_, rest, _ = strings.Cut(rest, "\nnova:\n")
	block, _, _ := strings.Cut(rest, "\ngroups:\n")
	raw, err := yaml.YAMLToJSONStrict([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	s, err := section.Parse(raw)
	if err != nil || len(s.Groups) != 2 || s.Groups[0].Name != "kube-worker-t2.medium" || s.Groups[0].Min != 1 || s.Groups[1].Name != "kube-worker-t2.large" || s.Groups[1].Max != 4 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestTheExampleIsGood reads the section of units/groups.yaml.example, which is commented
// out there.
func TestTheExampleIsGood(t *testing.T) {
	text, err := os.ReadFile("../../../units/groups.yaml.example")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "# nova:")
	rest, _, _ = strings.Cut(rest, "\n\n")
	lines := strings.Split(rest, "\n")[1:]
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "#")
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(strings.Join(lines, "\n")))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if s, err := section.Parse(raw); err != nil || len(s.Groups) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestThePageNamesEveryVariable of OpenStack's credentials; docs/configuration.md has the agent's own.
func TestThePageNamesEveryVariable(t *testing.T) {
	text := page(t)
	for _, name := range openstack.Variables() {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s is not named", name)
		}
	}
}
