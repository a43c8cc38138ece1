# A static binary and the certificates that it trusts, nothing else, run by a user without rights.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /todoku .
RUN mkdir -p /root-of-image && mkdir -m 1777 /root-of-image/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
# Uploads are stored here before they are read. A volume, so that it can be written under a read-only root.
COPY --from=build /root-of-image/ /
VOLUME /tmp
COPY --from=build /todoku /todoku
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/todoku"]
CMD ["api"]
