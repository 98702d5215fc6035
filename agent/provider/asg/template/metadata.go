package template

import (
	"cmp"
	"fmt"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// exposed says how pods of its machines reach the metadata service; empty: those without the host's network do not. What a launch
// template leaves open the image or the account decides; those of Amazon Linux 2023 say 2 hops.
func (t *launchTemplate) exposed() string {
	m := cmp.Or(t.data.MetadataOptions, &ec2types.LaunchTemplateInstanceMetadataOptions{})
	if m.HttpEndpoint == ec2types.LaunchTemplateInstanceMetadataEndpointStateDisabled {
		return ""
	}
	var why []string
	switch m.HttpTokens {
	case ec2types.LaunchTemplateHttpTokensStateRequired:
	case "":
		why = append(why, "does not require IMDSv2 (HttpTokens is not set: the image or the account decides)")
	default:
		why = append(why, "does not require IMDSv2 (HttpTokens is "+string(m.HttpTokens)+"): a server that can be made to fetch an address reads user data and credentials")
	}
	switch hops := m.HttpPutResponseHopLimit; {
	case hops == nil:
		why = append(why, "sets no hop limit (HttpPutResponseHopLimit: the image or the account decides, and images of Amazon say 2)")
	case *hops > 1:
		why = append(why, fmt.Sprintf("has a hop limit of %d: a pod reads user data and credentials", *hops))
	}
	if len(why) == 0 {
		return ""
	}
	return fmt.Sprintf("launch template %s version %d %s", cmp.Or(t.name, t.id), t.version, strings.Join(why, ", and "))
}
