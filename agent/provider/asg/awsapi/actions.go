package awsapi

// The IAM actions of the calls that are made.
const (
	ActionDescribeGroups     = "autoscaling:DescribeAutoScalingGroups"
	ActionDescribeActivities = "autoscaling:DescribeScalingActivities"
	ActionDescribeRefreshes  = "autoscaling:DescribeInstanceRefreshes"
	ActionSetDesired         = "autoscaling:SetDesiredCapacity"
	ActionCreateGroup        = "autoscaling:CreateAutoScalingGroup"
	ActionUpdateGroup        = "autoscaling:UpdateAutoScalingGroup"
	ActionTerminate          = "autoscaling:TerminateInstanceInAutoScalingGroup"
	ActionDescribeInstances  = "ec2:DescribeInstances"
	ActionDescribeSpot       = "ec2:DescribeSpotInstanceRequests"
	ActionDescribeSpotPrices = "ec2:DescribeSpotPriceHistory"
	ActionDescribeTypes      = "ec2:DescribeInstanceTypes"
	ActionDescribeImages     = "ec2:DescribeImages"
	ActionDescribeTemplates  = "ec2:DescribeLaunchTemplates"
	ActionDescribeVersions   = "ec2:DescribeLaunchTemplateVersions"
	ActionMatchTypes         = "ec2:GetInstanceTypesFromInstanceRequirements"
	ActionConsole            = "ec2:GetConsoleOutput"
	ActionPrices             = "pricing:GetProducts"
)
