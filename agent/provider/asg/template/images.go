package template

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// imageFact is what a template needs of an image. The zero value: nothing known.
type imageFact struct {
	arch    string
	os      string
	rootDev string
	rootGiB int64
}

// loadImages makes sure that images are cached as far as they can be read; the
// answer is why one could not be, by image. Images refine a template (root volume,
// architecture); a template without them is still a template.
func (rs *Resolver) loadImages(ctx context.Context, wanted map[string]bool) map[string]string {
	f := &rs.facts
	f.mu.Lock()
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(wanted)), func(id string) bool { _, ok := f.images[id]; return ok })
	f.mu.Unlock()
	failed, now := map[string]string{}, rs.now()
	// One call per image: an unknown ID fails a whole call, and there are few images.
	for _, id := range missing {
		if e := f.refused(id, now); e != nil {
			failed[id] = e.Error()
			continue
		}
		answer, err := rs.client.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
		if err != nil {
			e := awsapi.Classify("resolve template", "", awsapi.ActionDescribeImages, err)
			failed[id] = e.Error()
			f.refuse(id, e, now)
			continue
		}
		if len(answer.Images) == 0 {
			e := &provider.Error{Op: "resolve template", Kind: provider.Invalid, Err: errors.New("AWS lists no such image for this account")}
			failed[id] = e.Error()
			f.refuse(id, e, now)
			continue
		}
		f.mu.Lock()
		if f.images == nil {
			f.images = map[string]imageFact{}
		}
		f.images[id] = imageOf(answer.Images[0])
		f.mu.Unlock()
	}
	return failed
}

func (f *facts) imageFact(id string) imageFact {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.images[id]
}

func imageOf(i ec2types.Image) imageFact {
	out := imageFact{arch: archOf(string(i.Architecture)), os: "linux", rootDev: aws.ToString(i.RootDeviceName)}
	if i.Platform == ec2types.PlatformValuesWindows {
		out.os = "windows"
	}
	for _, m := range i.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToString(m.DeviceName) == out.rootDev {
			out.rootGiB = int64(aws.ToInt32(m.Ebs.VolumeSize))
		}
	}
	return out
}
