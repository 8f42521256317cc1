// Spheres of glass and metal over a chequered floor: reflections make tiles differ in work.
camera { location <0, 4, -9> look_at <0, 1, 2> }
light_source { <8, 14, -10> color rgb 1 }
light_source { <-9, 8, -4> color rgb 0.4 }
plane { y, 0 pigment { checker color rgb 0.9 color rgb <0.1, 0.2, 0.4> } finish { reflection 0.2 } }
#declare Row = 0;
#while (Row < 40)
  #declare Column = 0;
  #while (Column < 40)
    sphere { <(Column - 20) * 0.7, 0.35, Row * 0.7>, 0.33
      pigment { color rgb <mod(Column, 3) / 2, mod(Row, 4) / 3, 0.5> }
      finish { reflection 0.3 phong 0.8 } }
    #declare Column = Column + 1;
  #end
  #declare Row = Row + 1;
#end
height_field { function 96, 96 { pattern { bozo scale 0.1 } } smooth scale <24, 3, 20> translate <-12, 0, 12>
  pigment { color rgb <0.4, 0.5, 0.3> } }
