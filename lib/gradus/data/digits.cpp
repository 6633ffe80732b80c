#include <gradus/base/parallel.h>
#include <gradus/base/random.h>
#include <gradus/data/digits.h>
#include <gradus/tensor/views.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

// Only +, -, *, / and sqrt are used, which IEEE 754 rounds the same everywhere; so are the images.
namespace gradus {
namespace {

constexpr int kSide = 28;

struct Point {
  float x, y;
};
constexpr Point kPenUp{9, 9};  // the line to the next point is not drawn

// Polylines within x from -0.6 to 0.6 and y from -1 (top) to 1.
constexpr Point kZero[] = {{0, -1},      {.4f, -.75f}, {.55f, 0},     {.4f, .75f}, {0, 1},
                           {-.4f, .75f}, {-.55f, 0},   {-.4f, -.75f}, {0, -1}};
constexpr Point kOne[] = {{-.25f, -.65f}, {.05f, -1}, {.05f, 1}};
constexpr Point kTwo[] = {{-.5f, -.6f},  {-.3f, -.92f}, {.1f, -1}, {.45f, -.75f},
                          {.45f, -.35f}, {-.5f, 1},     {.55f, 1}};
constexpr Point kThree[] = {{-.5f, -.8f},  {-.1f, -1},    {.35f, -.85f}, {.42f, -.45f}, {.1f, -.08f},
                            {-.1f, -.05f}, kPenUp,        {.1f, -.08f},  {.5f, .25f},   {.5f, .7f},
                            {.1f, 1},      {-.35f, .95f}, {-.55f, .7f}};
constexpr Point kFour[] = {{.3f, 1}, {.3f, -1}, {-.55f, .4f}, {.6f, .4f}};
constexpr Point kFive[] = {{.5f, -1},   {-.4f, -1},   {-.48f, -.1f}, {0, -.22f},   {.45f, .05f},
                           {.5f, .55f}, {.15f, .95f}, {-.3f, .97f},  {-.55f, .75f}};
constexpr Point kSix[] = {{.4f, -.9f}, {0, -.8f},   {-.4f, -.2f}, {-.5f, .45f},  {-.25f, .95f}, {.2f, 1},
                          {.5f, .65f}, {.4f, .15f}, {.05f, 0},    {-.35f, .15f}, {-.5f, .45f}};
constexpr Point kSeven[] = {{-.55f, -1}, {.55f, -1}, {-.1f, 1}};
constexpr Point kEight[] = {{0, -.05f},    {-.38f, -.35f}, {-.38f, -.75f}, {0, -1},      {.38f, -.75f},
                            {.38f, -.35f}, {0, -.05f},     {.48f, .3f},    {.48f, .75f}, {0, 1},
                            {-.48f, .75f}, {-.48f, .3f},   {0, -.05f}};
constexpr Point kNine[] = {{-.4f, .9f},   {0, .8f},      {.4f, .2f}, {.5f, -.45f},  {.25f, -.95f}, {-.2f, -1},
                           {-.5f, -.65f}, {-.4f, -.15f}, {-.05f, 0}, {.35f, -.15f}, {.5f, -.45f}};
constexpr std::span<const Point> kGlyphs[] = {kZero, kOne, kTwo,   kThree, kFour,
                                              kFive, kSix, kSeven, kEight, kNine};

// How one image is drawn: from pixel to glyph coordinates, and how thick.
struct Pen {
  float a, b, c, d;  // the inverse of turn, shear and scale
  float shift_x, shift_y, radius, noise;

  Pen(const PhiloxStream& stream, int64_t image) {
    const auto draw = [&](int k, float low, float high) {
      return low + (high - low) * stream.uniform<float>(static_cast<uint64_t>(image * 8 + k));
    };
    const float t = draw(0, -.16f, .16f);  // tan of half the angle: up to 18 degrees
    const float cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
    const float shear = draw(1, -.3f, .3f), width = draw(2, .65f, 1.2f), height = draw(3, .75f, 1.1f);
    a = cosine / width, b = (sine + shear * cosine) / width;
    c = -sine / height, d = (cosine - shear * sine) / height;
    shift_x = draw(4, -3, 3), shift_y = draw(5, -2.5f, 2.5f);
    radius = draw(6, .09f, .19f);
    noise = draw(7, 0, 160);
  }
  Point to_glyph(int column, int row) const {
    constexpr float half = kSide / 2.0f, unit = 10;  // pixels per glyph unit
    const float x = (static_cast<float>(column) + .5f - half - shift_x) / unit;
    const float y = (static_cast<float>(row) + .5f - half - shift_y) / unit;
    return {a * x + b * y, c * x + d * y};
  }
};

float squared_distance(Point p, Point from, Point to) {
  const float dx = to.x - from.x, dy = to.y - from.y;
  const float along = ((p.x - from.x) * dx + (p.y - from.y) * dy) / (dx * dx + dy * dy);
  const float t = std::clamp(along, 0.0f, 1.0f);
  const float ex = p.x - (from.x + t * dx), ey = p.y - (from.y + t * dy);
  return ex * ex + ey * ey;
}

float distance_to_strokes(Point p, std::span<const Point> glyph) {
  float nearest = 100;
  for (size_t i = 1; i < glyph.size(); ++i)
    if (glyph[i - 1].x != kPenUp.x && glyph[i].x != kPenUp.x)
      nearest = std::min(nearest, squared_distance(p, glyph[i - 1], glyph[i]));
  return std::sqrt(nearest);
}

void draw_digit(uint8_t* pixels, int digit, const Pen& pen, const PhiloxStream& noise, int64_t image) {
  constexpr float soft = .1f;  // width of the edge between ink and paper
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const int pixel = row * kSide + column;
      const float distance = distance_to_strokes(pen.to_glyph(column, row), kGlyphs[digit]);
      const float ink = std::clamp((pen.radius + soft - distance) / soft, 0.0f, 1.0f);
      const float grain = noise.uniform<float>(static_cast<uint64_t>(image * kSide * kSide + pixel)) - .5f;
      pixels[pixel] = static_cast<uint8_t>(std::clamp(255 * ink + pen.noise * grain, 0.0f, 255.0f));
    }
  }
}

}  // namespace

ImageSet make_digits(int64_t count, uint64_t seed) {
  GRADUS_CHECK(count >= 0, "E-ARG", "make_digits: count must not be negative, got ", count);
  const PhiloxStream labels{seed, 0}, pens{seed, 1}, noise{seed, 2};
  ImageSet set{empty({count, 1, kSide, kSide}, kUInt8), empty({count}, kInt64)};
  if (count == 0) return set;
  uint8_t* pixels = set.images.data<uint8_t>();
  int64_t* label = set.labels.data<int64_t>();
  parallel_for(0, count, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      label[i] = static_cast<int64_t>(labels.below(static_cast<uint64_t>(i), 10));
      draw_digit(pixels + i * kSide * kSide, static_cast<int>(label[i]), Pen(pens, i), noise, i);
    }
  });
  return set;
}

ImageData make_digit_data(int64_t train, int64_t test, uint64_t seed) {
  const ImageSet all = make_digits(train + test, seed);
  const auto part = [&](int64_t begin, int64_t n) {
    return ImageSet{all.images.narrow(0, begin, n), all.labels.narrow(0, begin, n)};
  };
  return {"digits drawn by code", part(0, train), part(train, test)};
}

}  // namespace gradus
