# A static binary on an image that has nothing else but certificates, run by a user without rights.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /todoku .

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /todoku /todoku
USER nonroot
EXPOSE 8080
ENTRYPOINT ["/todoku"]
CMD ["api"]
