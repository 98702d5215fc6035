package template

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// requirementsLife is how long the types that meet a set of requirements are believed.
const requirementsLife = time.Hour

type matched struct {
	types []string
	until time.Time
}

// MatchTypes lists the instance types of an architecture (amd64, arm64) that meet requirements.
func (rs *Resolver) MatchTypes(ctx context.Context, requirements *ec2types.InstanceRequirementsRequest, arch string) ([]string, *provider.Error) {
	return rs.matchTypes(ctx, requirements, arch)
}

// matchTypes lists the instance types that meet requirements. requirements is a
// struct of either SDK package: their fields have the same names.
func (rs *Resolver) matchTypes(ctx context.Context, requirements any, arch string) ([]string, *provider.Error) {
	raw, err := json.Marshal(requirements)
	var want ec2types.InstanceRequirementsRequest
	if err == nil {
		err = json.Unmarshal(raw, &want)
	}
	if err != nil {
		return nil, &provider.Error{Op: "resolve template", Kind: provider.Invalid, Err: fmt.Errorf("instance requirements: %w", err)}
	}
	archs := []ec2types.ArchitectureType{ec2types.ArchitectureTypeX8664, ec2types.ArchitectureTypeArm64}
	switch arch {
	case "amd64":
		archs = archs[:1]
	case "arm64":
		archs = archs[1:]
	}
	key := arch + " " + string(raw)
	rs.facts.mu.Lock()
	known, ok := rs.facts.requirements[key]
	rs.facts.mu.Unlock()
	if ok && rs.now().Before(known.until) {
		return known.types, nil
	}
	pages := ec2.NewGetInstanceTypesFromInstanceRequirementsPaginator(rs.client, &ec2.GetInstanceTypesFromInstanceRequirementsInput{
		ArchitectureTypes: archs, VirtualizationTypes: []ec2types.VirtualizationType{ec2types.VirtualizationTypeHvm},
		InstanceRequirements: &want,
	})
	var types []string
	for pages.HasMorePages() {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsapi.Classify("resolve template", "", awsapi.ActionMatchTypes, err)
		}
		for _, t := range answer.InstanceTypes {
			types = append(types, aws.ToString(t.InstanceType))
		}
	}
	rs.facts.mu.Lock()
	if rs.facts.requirements == nil {
		rs.facts.requirements = map[string]matched{}
	}
	rs.facts.requirements[key] = matched{types: types, until: rs.now().Add(requirementsLife)}
	rs.facts.mu.Unlock()
	return types, nil
}
