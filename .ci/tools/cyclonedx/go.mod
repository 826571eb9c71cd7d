// The schemas of CycloneDX, which the release's bill of materials is held to. Nothing of the module is linked.
module github.com/ccship/ccship/ci/tools/cyclonedx

go 1.26.0

require github.com/CycloneDX/cyclonedx-go v0.12.0
